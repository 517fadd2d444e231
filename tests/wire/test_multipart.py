"""wire/multipart: the exact bytes of a form, and that an independent reader gets back what went in."""

from __future__ import annotations

import re
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import pytest

from membrane_lite.wire.multipart import Part, form_data

PNG = b"\x89PNG\r\n\x1a\n--\r\n\x00"
FORM = [Part("model", b"m"), Part("image[]", PNG, "image.png", "image/png")]


def test_a_form_byte_by_byte() -> None:
    content_type, body = form_data(FORM)
    boundary = content_type.partition("boundary=")[2]
    assert content_type == f"multipart/form-data; boundary={boundary}"
    assert body == (
        b"--%b\r\n"
        b'Content-Disposition: form-data; name="model"\r\n'
        b"\r\n"
        b"m\r\n"
        b"--%b\r\n"
        b'Content-Disposition: form-data; name="image[]"; filename="image.png"\r\n'
        b"Content-Type: image/png\r\n"
        b"\r\n"
        b"\x89PNG\r\n\x1a\n--\r\n\x00\r\n"
        b"--%b--\r\n"
    ) % ((boundary.encode(),) * 3)


def test_the_same_form_is_the_same_bytes_and_another_has_another_boundary() -> None:
    assert form_data(FORM) == form_data(list(FORM))
    assert form_data(FORM)[0] != form_data([FORM[0]])[0] != form_data([Part("model", b"n")])[0]


def test_the_boundary_keeps_to_the_grammar_and_needs_no_quotes() -> None:
    assert re.fullmatch(r"multipart/form-data; boundary=[0-9a-z-]{1,70}", form_data(FORM)[0])


def test_a_part_that_holds_the_boundary_gets_another_one() -> None:
    """The attacker's part: it names the boundary that the form without it would have. No two can be equal by design."""
    first = form_data([Part("a", b"x")])[0].partition("boundary=")[2].encode()
    boundary = form_data([Part("a", b"x"), Part("b", b"--" + first + b"--")])[0].partition("boundary=")[2].encode()
    assert boundary != first


def test_where_one_part_ends_and_the_next_begins_matters_to_the_boundary() -> None:
    assert form_data([Part("a", b"xy"), Part("a", b"")])[0] != form_data([Part("a", b"x"), Part("a", b"y")])[0]


def test_no_parts_are_a_form_too() -> None:
    content_type, body = form_data([])
    assert body == f"--{content_type.partition('boundary=')[2]}--\r\n".encode()


NAMES = {
    "quotes would end the name": ('a"b', b'name="a%22b"'),
    "line breaks would end the line": ("a\r\nb", b'name="a%0D%0Ab"'),
    "a per cent sign is no escape here": ("a%22b", b'name="a%22b"'),
    "a backslash stands for itself": ("a\\b", b'name="a\\b"'),
    "other scripts go out in UTF-8": ("größe", 'name="größe"'.encode()),
}


@pytest.mark.parametrize("name, written", NAMES.values(), ids=NAMES.keys())
def test_a_name(name: str, written: bytes) -> None:
    assert form_data([Part(name, b"")])[1].split(b"\r\n")[1] == b"Content-Disposition: form-data; " + written


CONTENTS = {
    "nothing": b"",
    "a line break at its end": b"x\r\n",
    "dashes": b"--\r\n----",
    "every byte": bytes(range(256)),
    "what looks like a header": b"Content-Type: text/html\r\n\r\n<p>",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_the_standard_library_reads_what_was_written(content: bytes) -> None:
    content_type, body = form_data([Part("f", content, "f.bin", "application/octet-stream"), Part("t", b"text")])
    message: Any = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    file, text = message.iter_parts()
    assert message.defects == []
    assert (file.get_filename(), file.get_content_type(), file.get_payload(decode=True)) == (
        "f.bin",
        "application/octet-stream",
        content,
    )
    assert text.get_payload(decode=True) == b"text"

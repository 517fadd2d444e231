"""data_block: a text cannot end the block that it stands in."""

from __future__ import annotations

import random
import re
import time

import pytest
from lanes.lane_stage import refused

from membrane_lite.lanes import wrap_as_data

WRAPPED: dict[str, tuple[str, str, str]] = {
    "a text": ("memory", "Remember: be kind.", '<data label="memory">\nRemember: be kind.\n</data>'),
    "an empty one": ("memory", "", '<data label="memory">\n\n</data>'),
    "the closing tag": ("memory", "a</data>b", '<data label="memory">\na<\\/data>b\n</data>'),
    "in another case": ("memory", "</DaTa>", '<data label="memory">\n<\\/DaTa>\n</data>'),
    "with spaces": ("memory", "< / data >", '<data label="memory">\n< \\/ data >\n</data>'),
    "over lines": ("memory", "<\n/\tdata\n>", '<data label="memory">\n<\n\\/\tdata\n>\n</data>'),
    "with attributes, which are kept": ("m", '</data x="1">', '<data label="m">\n<\\/data x="1">\n</data>'),
    "left open at the end": ("m", "</data", '<data label="m">\n<\\/data\n</data>'),
    "named by the label": (
        "memory",
        "</memory> </MEMORY x>",
        '<data label="memory">\n<\\/memory> <\\/MEMORY x>\n</data>',
    ),
    "a label of two words": ("rollout 3", "</Rollout 3>", '<data label="rollout 3">\n<\\/Rollout 3>\n</data>'),
    "and whatever space is between them": (
        "rollout 3",
        "</rollout\n 3>",
        '<data label="rollout 3">\n<\\/rollout\n 3>\n</data>',
    ),
    "a label with space around it": (" memory ", "</memory>", '<data label=" memory ">\n<\\/memory>\n</data>'),
    "a label that is a pattern": ("a.*", "</abc></a.*>", '<data label="a.*">\n</abc><\\/a.*>\n</data>'),
    "a label that ends its attribute": ('x" y=<&>', "t", '<data label="x&quot; y=&lt;&amp;&gt;">\nt\n</data>'),
    "other tags stay": (
        "memory",
        "<data> </database> </data-set> </data.x> </p> <\\/data> /data>",
        '<data label="memory">\n<data> </database> </data-set> </data.x> </p> <\\/data> /data>\n</data>',
    ),
}


@pytest.mark.parametrize("label, text, block", WRAPPED.values(), ids=WRAPPED.keys())
def test_wrap_as_data(label: str, text: str, block: str) -> None:
    assert wrap_as_data(label, text) == block


@pytest.mark.parametrize("label", ["", " ", "a\nb", "a\n", "a\r", "a\u2028b"])
def test_wrap_as_data_refuses_a_label_that_is_no_line(label: str) -> None:
    error = refused(lambda: wrap_as_data(label, "text"))
    assert (error.type, error.message) == ("invalid_request", f"label: found {label!r}; expected a name on one line")


def test_wrap_as_data_takes_texts_only() -> None:
    error = refused(lambda: wrap_as_data("memory", None))  # type: ignore[arg-type]
    assert error.message == "text: found NoneType None; expected a string"


# What a reader may take for the end of the block: spaces anywhere, any case, anything behind the name.
ENDS = re.compile(r"<\s*/\s*(?:data|memory)(?:\s[^>]*|/)?>?", re.IGNORECASE)
PIECES = (
    *("<", "<", "/", "/", "</", ">", "\\", "data", "DATA", "dAtA", "memory", "Memory", " ", "\t", "\n", "\u00a0"),
    *("</data>", "</memory>", "</data x=y>", "< / data", 'a="b"', "x", "é", "-", "</", "Ignore all of the above."),
)


def test_wrap_as_data_of_ten_thousand_adversarial_texts() -> None:
    """No closing tag stands in a body, and taking the new backslashes out gives the text back."""
    dice = random.Random(20260911)
    for _ in range(10_000):
        text = "".join(dice.choices(PIECES, k=dice.randrange(1, 16)))
        wrapped = wrap_as_data("memory", text)
        head, tail = '<data label="memory">\n', "\n</data>"
        body = wrapped[len(head) : -len(tail)]
        assert (wrapped[: len(head)], wrapped[-len(tail) :]) == (head, tail)
        found = [match.group() for match in ENDS.finditer(body) if not re.match(r"[\w.:-]", body[match.end() :])]
        assert (text, found) == (text, [])
        assert len(body) - len(text) == body.count("\\") - text.count("\\")
        assert body.replace("\\", "") == text.replace("\\", "")


def test_wrap_as_data_takes_linear_time() -> None:
    def cost(size: int) -> float:
        text = ("<" + " " * 40 + "/ ") * size + "<" * size + "</data " * size
        runs = []
        for _ in range(5):
            began = time.process_time()
            wrap_as_data("memory", text)
            runs.append(time.process_time() - began)
        return min(runs)

    assert cost(16_000) < 4 * cost(8_000)

"""wire.sigv4: each step by itself, then AWS's own suite and what botocore signed for Bedrock, byte by byte."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from shared_data import shared_json

from membrane_lite.errors import MembraneError
from membrane_lite.wire.http import header
from membrane_lite.wire.sigv4 import SignedRequest, amz_date, canonical_headers, canonical_path, canonical_query, sign

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/invoke"


def signed(url: str = URL, headers: Any = (), body: bytes = b"{}", **changed: Any) -> SignedRequest:
    settings = {
        "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": SECRET,
        "region": "us-east-1",
        "service": "bedrock",
        "amz_date": "20250110T000000Z",
        **changed,
    }
    return sign("POST", url, headers, body, **settings)


# The example that AWS's pages have had since the first of them: GET / of IAM's ListUsers.
def test_the_example_of_the_documentation() -> None:
    done = sign(
        "GET",
        "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
        b"",
        access_key_id="AKIDEXAMPLE",
        secret_access_key=SECRET,
        region="us-east-1",
        service="iam",
        amz_date="20150830T123600Z",
    )
    assert done.canonical_request == (
        "GET\n/\nAction=ListUsers&Version=2010-05-08\n"
        "content-type:application/x-www-form-urlencoded; charset=utf-8\nhost:iam.amazonaws.com\n"
        "x-amz-date:20150830T123600Z\n\ncontent-type;host;x-amz-date\n"
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    assert done.string_to_sign == (
        "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n"
        "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59"
    )
    assert done.signature == "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"


PATHS: dict[str, tuple[str, bool, str]] = {
    "what is escaped is escaped once more": ("/model/a%3A0/invoke", False, "/model/a%253A0/invoke"),
    "a colon that was sent as it is": ("/a:b", False, "/a%3Ab"),
    "unreserved characters stay": ("/-_.~aZ9", False, "/-_.~aZ9"),
    "beyond ASCII: the bytes of UTF-8": ("/é", False, "/%C3%A9"),
    "as it is, unless it is normalised": ("/a//./b/../c", False, "/a//./b/../c"),
    "normalised": ("/a//./b/../c/", True, "/a/c/"),
    "normalised above the root": ("/../..", True, "/"),
    "nothing": ("/", True, "/"),
}


@pytest.mark.parametrize("path, normalize, canonical", PATHS.values(), ids=PATHS.keys())
def test_the_path(path: str, normalize: bool, canonical: str) -> None:
    assert canonical_path(path, normalize=normalize) == canonical


QUERIES: dict[str, tuple[str, str]] = {
    "sorted by name, then value": ("b=1&a=2&a=1", "a=1&a=2&b=1"),
    "a name alone has an equals sign": ("acl", "acl="),
    "what is escaped stays": ("a=%20b", "a=%20b"),
    "what is not is": ("a=ü b", "a=%C3%BC%20b"),
    "a second equals sign belongs to the value": ("a=b=c", "a=b=c"),
    "none": ("", ""),
}


@pytest.mark.parametrize("query, canonical", QUERIES.values(), ids=QUERIES.keys())
def test_the_query(query: str, canonical: str) -> None:
    assert canonical_query(query) == canonical


HEADERS: dict[str, tuple[list[tuple[str, str]], tuple[str, str]]] = {
    "lower case, sorted": ([("Host", "h"), ("Accept", "a")], ("accept;host", "accept:a\nhost:h\n")),
    "trimmed, blanks made one": ([("X", "  a \t b  ")], ("x", "x:a b\n")),
    "a repeated one in its order": ([("X", "2"), ("x", "1")], ("x", "x:2,1\n")),
}


@pytest.mark.parametrize("headers, canonical", HEADERS.values(), ids=HEADERS.keys())
def test_the_headers(headers: Any, canonical: tuple[str, str]) -> None:
    assert canonical_headers(headers) == canonical


def test_the_token_is_signed_and_sent_or_only_sent() -> None:
    names = [
        header(signed(session_token="tok", sign_session_token=own).headers, "Authorization") for own in (True, False)
    ]
    assert ["x-amz-security-token" in str(value) for value in names] == [True, False]
    assert header(signed(session_token="tok", sign_session_token=False).headers, "X-Amz-Security-Token") == "tok"


def test_what_is_sent_are_the_given_headers_and_then_the_signers() -> None:
    names = [name for name, _ in signed(headers={"Accept": "a"}, session_token="t", sign_body=True).headers]
    assert names == ["Accept", "X-Amz-Date", "X-Amz-Content-Sha256", "X-Amz-Security-Token", "Authorization"]


HOSTS: dict[str, tuple[str, str]] = {
    "the default port is not named": ("https://Host.example:443/", "host:host.example\n"),
    "nor is that of http": ("http://host.example:80/", "host:host.example\n"),
    "another one is": ("https://host.example:80/", "host:host.example:80\n"),
    "an address of six parts": ("http://[::1]:9000/base", "host:[::1]:9000\n"),
}


@pytest.mark.parametrize("url, line", HOSTS.values(), ids=HOSTS.keys())
def test_the_host(url: str, line: str) -> None:
    assert line in signed(url).canonical_request


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no url": ({"url": "bedrock/model"}, "url: found 'bedrock/model'"),
    "a date of another form": ({"amz_date": "2025-01-10"}, "amz_date: found '2025-01-10'"),
}


@pytest.mark.parametrize("changed, words", WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_signed(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(MembraneError) as raised:
        signed(**changed)
    assert raised.value.type == "invalid_request"
    assert raised.value.message.startswith(words)


def test_nothing_secret_is_shown() -> None:
    assert "tok" not in repr(signed(session_token="a-token"))


def test_the_date() -> None:
    assert amz_date(1736467200.9) == "20250110T000000Z"


# The corpora


def test_the_suite_of_aws() -> None:
    assert [
        fault for case in shared_json("conformance/sigv4.json")["cases"] for fault in faults(of_suite(case), case)
    ] == []


def test_what_botocore_sends_to_bedrock() -> None:
    cases = shared_json("conformance/sigv4_bedrock.json")["cases"]
    assert len(cases) == 80
    assert [fault for case in cases for fault in faults(of_bedrock(case), case)] == []


def of_suite(case: Any) -> SignedRequest:
    host = next(value for name, value in case["headers"] if name.lower() == "host")
    return sign(
        case["method"],
        "https://" + host + case["uri"],
        [tuple(pair) for pair in case["headers"]],
        case["body"].encode(),
        **case["credentials"],
        region=case["region"],
        service=case["service"],
        amz_date=case["amz_date"],
        normalize_path=case["normalize"],
        sign_body=case["sign_body"],
        sign_session_token=not case.get("omit_session_token", False),
    )


def of_bedrock(case: Any) -> SignedRequest:
    return sign(
        case["method"],
        f"{case['scheme']}://{case['host']}{case['wire_target']}",
        [tuple(pair) for pair in case["headers"]],
        base64.b64decode(case["body_base64"]),
        **case["credentials"],
        region=case["region"],
        service=case["service"],
        amz_date=case["amz_date"],
        normalize_path=True,
    )


def faults(done: SignedRequest, case: Any) -> list[str]:
    seen = {**done._asdict(), "authorization": header(done.headers, "Authorization")}
    names = ("canonical_request", "string_to_sign", "signature", "authorization")
    return [f"{case['name']}: {name}" for name in names if seen[name] != case[name]]

"""AWS Signature Version 4: one function, four steps, every intermediate value returned.

Source, whose names and order these are: docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.

    sign("POST", "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3Ab/invoke", {}, b"{}",
         access_key_id="AKID", secret_access_key="...", region="us-east-1", service="bedrock",
         amz_date="20250110T000000Z").headers
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import quote

from ..errors import invalid
from .http import HeaderPairs, HeadersInput, header

ALGORITHM: Final = "AWS4-HMAC-SHA256"
UNRESERVED: Final = "-_.~"  # beside letters and digits (RFC 3986, 2.3)
DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}

URL: Final = re.compile(r"(?P<scheme>https?)://(?P<host>[^/?#]+)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?", re.S)
AMZ_DATE: Final = re.compile(r"\d{8}T\d{6}Z", re.ASCII)


class SignedRequest(NamedTuple):
    """headers: those to send, in order: the given ones, then the signer's. The rest shows how they came about."""

    headers: HeaderPairs
    canonical_request: str
    string_to_sign: str
    signature: str

    def __repr__(self) -> str:
        return f"SignedRequest(signature={self.signature!r})"  # a header may hold the session token


def amz_date(seconds: float) -> str:
    """Seconds since the epoch, as X-Amz-Date writes them."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def sign(
    method: str,
    url: str,
    headers: HeadersInput,
    body: bytes,
    *,
    access_key_id: str,
    secret_access_key: str,
    session_token: str | None = None,
    region: str,
    service: str,
    amz_date: str,
    normalize_path: bool = False,
    sign_body: bool = False,
    sign_session_token: bool = True,
) -> SignedRequest:
    """Sign a request: returns its headers with Authorization, X-Amz-Date and the token, and every step on the way.

    url: as it is sent; raw spaces and characters beyond ASCII are taken as the bytes they would be sent as. headers:
    a mapping or pairs; all of them are signed, and Host where it is not among them. amz_date: "20250110T000000Z".
    normalize_path: "/a/../b" is signed as "/b", as all services but S3 read it. sign_body: send and sign
    X-Amz-Content-Sha256. sign_session_token: False sends the token outside the signature.
    Raises MembraneError("invalid_request") for a url or a date of another form.
    """
    host, path, query = _parts(url)
    if AMZ_DATE.fullmatch(amz_date) is None:
        raise invalid("amz_date", f"found {amz_date!r}", "expected a form like 20250110T000000Z")
    given = list(headers.items() if isinstance(headers, Mapping) else headers)
    payload_hash = sha256(body).hexdigest()
    token = [("X-Amz-Security-Token", session_token)] if session_token else []
    content_hash = [("X-Amz-Content-Sha256", payload_hash)] if sign_body else []
    own = [("X-Amz-Date", amz_date), *content_hash, *(token if sign_session_token else [])]
    to_sign = [*([] if header(given, "host") is not None else [("Host", host)]), *given, *own]

    # Step 1, the canonical request: the one spelling that both ends can rebuild.
    names, lines = canonical_headers(to_sign)
    target = f"{canonical_path(path, normalize=normalize_path)}\n{canonical_query(query)}"
    canonical_request = f"{method}\n{target}\n{lines}\n{names}\n{payload_hash}"

    # Step 2, the string to sign: algorithm, time, scope, and step 1 by its hash.
    scope = f"{amz_date[:8]}/{region}/{service}/aws4_request"
    hashed = sha256(canonical_request.encode("utf-8")).hexdigest()
    string_to_sign = f"{ALGORITHM}\n{amz_date}\n{scope}\n{hashed}"

    # Step 3, the signature: the secret is narrowed to the scope, one word of it at a time.
    key = b"AWS4" + secret_access_key.encode("utf-8")
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode("utf-8"), "sha256")
    signature = hmac.digest(key, string_to_sign.encode("utf-8"), "sha256").hex()

    # Step 4, the header that says who signed what.
    credential = f"Credential={access_key_id}/{scope}"
    authorization = f"{ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"
    unsigned = [] if sign_session_token else token
    sent = [*given, *own, *unsigned, ("Authorization", authorization)]
    return SignedRequest(sent, canonical_request, string_to_sign, signature)


def _parts(url: str) -> tuple[str, str, str]:
    """Host (a default port left out, as it is sent), path, query."""
    found = URL.fullmatch(url)
    if found is None:
        raise invalid("url", f"found {url[:100]!r}", "expected http:// or https:// and a host")
    host = found["host"].rpartition("@")[2].lower()
    default = DEFAULT_PORTS[found["scheme"]]
    return host[: -len(default)] if host.endswith(default) else host, found["path"] or "/", found["query"] or ""


def canonical_path(path: str, *, normalize: bool) -> str:
    """The path as it is sent, escaped once more; only "/" stays. Normalised: no empty, "." or ".." segments."""
    return quote(_normalized(path) if normalize else path, safe="/" + UNRESERVED)


def _normalized(path: str) -> str:
    """RFC 3986, 5.2.4, and empty segments dropped; a slash at the end stays."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return "/" + "/".join(kept) + end


def canonical_query(query: str) -> str:
    """Pairs sorted by name, then value, each with its "="; escaped, but what is escaped already stays as it is."""
    pairs = [quote(pair, safe="=%" + UNRESERVED).partition("=") for pair in query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in sorted((name, value) for name, _, value in pairs))


def canonical_headers(headers: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The signed names, joined by ";", and a line for each: values trimmed, runs of blanks made one."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(" ".join(value.split()))
    names = sorted(values)
    return ";".join(names), "".join(f"{name}:{','.join(values[name])}\n" for name in names)

"""Anthropic's models on AWS Bedrock: POST /model/{id}/invoke and /model/{id}/invoke-with-response-stream.

    > {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}
    < a frame: {":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}
               {"bytes": "eyJ0eXBlIjoiY29udGVudF9ibG9ja19kZWx0YSIs...", "p": "abcd"}

The events in the frames are Anthropic's (anthropic.py). A request must be signed with one of KEYS, or bring any bearer
token; it is refused as AWS refuses it. Sources: docs.aws.amazon.com/IAM/latest/UserGuide/
reference_sigv-create-signed-request.html; smithy.io/2.0/aws/amazon-eventstream.html.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from . import anthropic
from .answers import Headers, Raw, pairs
from .format import UNASKED, Asked, Format, json_bytes

if TYPE_CHECKING:
    from .received import Received
    from .replies import Reply

Json = Mapping[str, Any]


class Known(NamedTuple):
    """A secret key, and the session token that temporary credentials need beside it."""

    secret_access_key: str
    session_token: str | None = None


# Access key id -> what belongs to it: lasting credentials, and temporary ones.
ACCESS_KEY_ID: Final = "AKIALOOPBACK00000001"
TEMPORARY_KEY_ID: Final = "ASIALOOPBACK00000002"
KEYS: Final[Mapping[str, Known]] = {
    ACCESS_KEY_ID: Known("loopback/secret+key/of/forty/characters0"),
    TEMPORARY_KEY_ID: Known("another/loopback+secret/of/forty/letters", "bG9vcGJhY2s/session+token=="),
}
REGION: Final = "us-east-1"  # every other one is as good

TARGET: Final = re.compile(r"/model/[^/]+/invoke(?P<streamed>-with-response-stream)?$")
MALFORMED: Final = "Malformed input request, please reformat your input and try again."
ALLOWED_SKEW: Final = timedelta(minutes=5)
PADDING: Final = "abcdefghijklmnopqrstuvwxyz"


def events(reply: Reply, asked: Asked = UNASKED) -> list[bytes]:
    """The frames of a stream. The last one brings Bedrock's own measurements too; pings are not passed on."""
    inner = [sent.partition(b"data: ")[2].strip() for sent in anthropic.events(reply, asked) if sent != anthropic.PING]
    measured = {"inputTokenCount": 0, "outputTokenCount": 0, "invocationLatency": 1, "firstByteLatency": 1}
    last = json_bytes({"type": "message_stop", "amazon-bedrock-invocationMetrics": measured})
    return [chunk(event) for event in [*inner[:-1], last]]


def document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The whole answer."""
    return anthropic.document(reply, asked)


def chunk(event: bytes) -> bytes:
    """The frame of one event, padded so that its length says little of its text."""
    padding = PADDING[: 1 + len(event) % len(PADDING)]
    payload = json_bytes({"bytes": b64encode(event).decode("ascii"), "p": padding})
    return frame({":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}, payload)


def exception(type: str, message: str) -> bytes:
    """The frame of an error in the middle of a stream: exception("throttlingException", "Too many tokens")."""
    headers = {":exception-type": type, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json_bytes({"message": message}))


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Any frame whose headers are all strings (type 7)."""
    block = b"".join(
        struct.pack(">B", len(name)) + name.encode() + b"\x07" + struct.pack(">H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(block) + len(payload), len(block))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + block + payload
    return begun + struct.pack(">I", zlib.crc32(begun))


def error(status: int, type: str, message: str, *, headers: Headers = ()) -> Raw:
    """An error as AWS answers it, such as error(429, "ThrottlingException", "Too many requests")."""
    own = (("Content-Type", "application/json"), ("x-amzn-ErrorType", f"{type}:http://internal.amazon.com/coral/"))
    return Raw(status, (*own, *pairs(headers)), json_bytes({"message": message}), framing="length")


def error_event(type: str = "throttlingException", message: str = "Too many tokens") -> bytes:
    """An exception frame; HTTP's name of a type begins with a capital letter, a frame's does not."""
    return exception(type[:1].lower() + type[1:], message)


def check(received: Received) -> Raw | None:
    """The error with which Bedrock would refuse the request, or None."""
    misshapen = "messages: Input does not match the expected shape."
    return first_fault(received, (_fields, *anthropic.CHECKS[1:]), misshapen)


def first_fault(
    received: Received, checks: Sequence[Callable[[Json], Iterator[str]]], misshapen: str = MALFORMED
) -> Raw | None:
    """What Bedrock says first of a request, its signature or its body; None where nothing is wrong with either."""
    refused = check_signature(received)
    if refused is not None:
        return refused
    try:
        body = received.json
    except ValueError:
        return error(400, "ValidationException", MALFORMED)
    try:
        found = next((message for find in checks for message in find(body)), None)
    except (LookupError, TypeError, AttributeError):
        found = misshapen
    return None if found is None else error(400, "ValidationException", found)


def _fields(body: Json) -> Iterator[str]:
    for field in ("anthropic_version", "max_tokens", "messages"):
        if field not in body:
            yield f"{field}: Field required"
    for field in ("model", "modelId", "stream"):
        if field in body:
            yield f"{field}: Extra inputs are not permitted"


def skew_refusal(received: Received, now: datetime) -> Raw | None:
    """The refusal of a request whose date is more than five minutes off; else None. For scripts, which have a clock:

    LoopbackProvider(lambda received: bedrock.skew_refusal(received, noon) or Reply("Hello"))
    """
    signed = received.header("x-amz-date") or ""
    try:
        date = datetime.strptime(signed, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    if abs(now - date) <= ALLOWED_SKEW:
        return None
    late = date < now
    bound = now - ALLOWED_SKEW if late else now + ALLOWED_SKEW
    words, than, sign = ("expired", "now earlier", "-") if late else ("not yet current", "still later", "+")
    message = f"Signature {words}: {signed} is {than} than {_stamp(bound)} ({_stamp(now)} {sign} 5 min.)"
    return error(403, "InvalidSignatureException", message, headers={"Date": format_datetime(now, usegmt=True)})


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y%m%dT%H%M%SZ")


# Signatures: what AWS does with a request, written from its description of what a client does.

AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/,]+)/(?P<scope>(?P<date>\d{8})/[^/,]+/bedrock/aws4_request), ?"
    r"SignedHeaders=(?P<names>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
INVALID_TOKEN: Final = "The security token included in the request is invalid."
WRONG_SIGNATURE: Final = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)


def check_signature(received: Received) -> Raw | None:
    """The refusal of a request that is not signed, or not well; None for one that is, or that brings a bearer token."""
    authorization = received.header("authorization")
    if authorization is None:
        return error(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
    if re.fullmatch(r"Bearer \S+", authorization):
        return None
    found = AUTHORIZATION.fullmatch(authorization)
    date = received.header("x-amz-date") or ""
    if found is None or not date.startswith(found["date"]):
        return error(403, "IncompleteSignatureException", "Authorization header is not a complete signature.")
    known = KEYS.get(found["id"])
    if known is None or received.header("x-amz-security-token") != known.session_token:
        return error(403, "UnrecognizedClientException", INVALID_TOKEN)
    names = found["names"].split(";")
    if not _all_signed(received, names):
        return error(403, "InvalidSignatureException", "A header that must be signed is not.")
    expected = _signature(received, names, known.secret_access_key, scope=found["scope"], date=date)
    if not hmac.compare_digest(expected, found["signature"]):
        return error(403, "InvalidSignatureException", WRONG_SIGNATURE)
    return None


def _all_signed(received: Received, names: list[str]) -> bool:
    """Host and every x-amz header; names are sorted and in lower case."""
    needed = {"host"} | {name.lower() for name, _ in received.headers if name.lower().startswith("x-amz-")}
    return needed <= set(names) and names == sorted(name.lower() for name in names)


def _signature(received: Received, names: list[str], secret: str, *, scope: str, date: str) -> str:
    request = "\n".join(
        [
            received.method,
            _canonical_uri(received.target.partition("?")[0]),
            "&".join(
                sorted(
                    pair if "=" in pair else pair + "=" for pair in received.target.partition("?")[2].split("&") if pair
                )
            ),
            *(f"{name}:{_canonical_value(received, name)}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(received.body).hexdigest(),
        ]
    )
    to_sign = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()])
    day, region, service, end = scope.split("/")
    key = _hmac(_hmac(_hmac(_hmac(("AWS4" + secret).encode(), day), region), service), end)
    return _hmac(key, to_sign).hex()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _canonical_uri(path: str) -> str:
    """Without redundant segments (RFC 3986, 6), and each escaped once more than it was sent."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            kept = kept[:-1]
        elif segment and segment != ".":
            kept.append("".join(chr(byte) if chr(byte) in UNRESERVED else f"%{byte:02X}" for byte in segment.encode()))
    return "/" + "/".join(kept) + ("/" if kept and path.endswith("/") else "")


def _canonical_value(received: Received, name: str) -> str:
    values = [value for key, value in received.headers if key.lower() == name]
    return ",".join(re.sub(" +", " ", value.strip()) for value in values)


UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

BEDROCK: Final = Format(
    name="bedrock",
    stream_type="application/vnd.amazon.eventstream",
    request_id_header="x-amzn-RequestId",
    error_types={
        400: "ValidationException",
        403: "AccessDeniedException",
        404: "ResourceNotFoundException",
        408: "ModelTimeoutException",
        424: "ModelErrorException",
        429: "ThrottlingException",
        500: "InternalServerException",
        503: "ServiceUnavailableException",
    },
    ping=chunk(b'{"type":"ping"}'),
    is_streamed=lambda received: TARGET.search(received.target.partition("?")[0])["streamed"] is not None,  # type: ignore[index]
    check=check,
    events=events,
    document=document,
    error=error,
    error_event=error_event,
)

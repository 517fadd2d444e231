"""A form's body taken apart (RFC 7578), by the standard library's reader of MIME messages."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, NamedTuple


class File(NamedTuple):
    """One file of a form."""

    filename: str
    media_type: str
    data: bytes


def form_fields(content_type: str, body: bytes) -> dict[str, Any]:
    """Each field's text, or its File; a field whose name ends in [] is a list of all that have it.

    Raises ValueError where the body does not follow the boundary that the content type names.
    """
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1")
    message: Any = BytesParser(policy=HTTP).parsebytes(head + body)
    if not message.is_multipart() or message.defects:
        raise ValueError(f"the body is no form: {message.defects}")
    fields: dict[str, Any] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="Content-Disposition")
        if name.endswith("[]"):
            fields.setdefault(name, []).append(_value(part))
        else:
            fields[name] = _value(part)
    return fields


def _value(part: Any) -> str | File:
    data: bytes = part.get_payload(decode=True)
    filename = part.get_filename()
    return data.decode("utf-8") if filename is None else File(filename, part.get_content_type(), data)

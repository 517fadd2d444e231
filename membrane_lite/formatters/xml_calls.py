"""The invokes of a block of calls. Tags in, tool calls out, in document order, each with what is wrong or odd about it.

    <invoke name="look"> <parameter name="at">value</parameter> ... </invoke>      <invoke name="look"/>

An invoke ends at the first closer after its opener, a value at the first closer of a parameter. A call that cannot be
told for sure is refused: it has no input, and its source as it came. It is refused when

    it has no name, or a parameter has none
    it is not closed before the next invoke, or before the end of its block
    a parameter is not closed
    text stands behind a parameter, or in an invoke without parameters, or markup before the first one
    text stands between a CDATA section and the closer
    a value holds the opener of a required parameter that is missing, or of any declared one that is missing, directly
    behind a closing tag of another spelling

Other oddities are doubts, and the call stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ..values.content import ToolUse
from .xml_blocks import Span, whole
from .xml_markup import Marked, attribute
from .xml_signatures import Signature, Signatures
from .xml_tags import WHITESPACE, is_blank
from .xml_values import read_value

NAMELESS: Final = "unnamed"

# How a refusal ends; a model that meant its text as data is told how to write it.
NOTHING_SENT: Final = "; nothing was sent."
WRITE_CDATA: Final = f"{NOTHING_SENT} To send this text as data, write the value as CDATA."


class Call(NamedTuple):
    """refusal: one sentence for the model, "" for a call that stands. doubts: for the log, without any value."""

    use: ToolUse
    refusal: str = ""
    doubts: tuple[str, ...] = ()


class Invoke(NamedTuple):
    """head, closer: places in the list of tags; an empty tag is its own closer. end: a place in the text."""

    head: int
    closer: int | None
    end: int


class Parameter(NamedTuple):
    """first, last: places of the tags between opener and closer. text: what stands between, CDATA as it was written."""

    name: str
    text: str
    payload: str | None
    first: int
    last: int


class Refused(Exception):
    """Why a call cannot be told for sure. Does not leave this file."""


class Body(NamedTuple):
    input: dict[str, Any]
    doubts: list[str]


def read_calls(source: Marked, span: Span, *, new_id: Callable[[], str], signatures: Signatures) -> list[Call]:
    """The calls of a closed block."""
    raw_xml, end = whole(source, span), source.tags[span.closer].start
    return [
        _call(source, invoke, raw_xml=raw_xml, id=new_id(), signatures=signatures)
        for invoke in _invokes(source, span.opener + 1, last=span.closer, end=end)
    ]


def read_unfinished(source: Marked, opener: int, *, new_id: Callable[[], str], signatures: Signatures) -> list[Call]:
    """The calls of a block that the text ends in: the complete ones, and the rest as one from the first that is not."""
    raw_xml = source.text[source.tags[opener].start :]
    calls: list[Call] = []
    for invoke in _invokes(source, opener + 1, last=len(source.tags), end=len(source.text)):
        if invoke.closer is None:
            head = source.tags[invoke.head]
            rest = source.text[head.start :]
            return [*calls, Call(_broken(new_id(), attribute(head.attributes, "name"), rest, raw_xml))]
        calls.append(_call(source, invoke, raw_xml=raw_xml, id=new_id(), signatures=signatures))
    return calls


def _broken(id: str, name: str, invoke: str, raw_xml: str) -> ToolUse:
    return ToolUse(id, name or NAMELESS, {}, unparseable_input=invoke, raw_xml=raw_xml)


def _invokes(source: Marked, first: int, *, last: int, end: int) -> Iterator[Invoke]:
    """The invokes of the tags from `first` to before `last`. An opener inside an open one leaves that unclosed."""
    head: int | None = None
    for index in range(first, last):
        tag = source.tags[index]
        if tag.name != "invoke" or (head is not None and tag.form == "empty"):
            continue
        if tag.form == "empty":
            yield Invoke(index, index, tag.end)
        elif tag.form == "close":
            if head is not None:
                yield Invoke(head, index, tag.end)
            head = None
        else:
            if head is not None:
                yield Invoke(head, None, tag.start)
            head = index
    if head is not None:
        yield Invoke(head, None, end)


def _call(source: Marked, invoke: Invoke, *, raw_xml: str, id: str, signatures: Signatures) -> Call:
    head = source.tags[invoke.head]
    name = attribute(head.attributes, "name")
    label = f"the call of {name!r}" if name else "a call"
    try:
        body = _body(source, invoke, name, signatures.of(name))
    except Refused as refused:
        use = _broken(id, name, source.text[head.start : invoke.end], raw_xml)
        return Call(use, f"{label} was refused: {refused}")
    doubts = tuple(f"{label}: {doubt}" for doubt in body.doubts)
    return Call(ToolUse(id, name, body.input, raw_xml=raw_xml), doubts=doubts)


def _body(source: Marked, invoke: Invoke, name: str, signature: Signature) -> Body:
    body = Body({}, [])
    if not name:
        raise Refused("its invoke has no name" + NOTHING_SENT)
    if invoke.closer is None:
        raise Refused("its invoke is not closed" + WRITE_CDATA)
    if invoke.closer == invoke.head:
        return body
    parameters = _parameters(source, invoke.head + 1, last=invoke.closer, doubts=body.doubts)
    missing = signature.missing(parameter.name for parameter in parameters)
    for parameter in parameters:
        swallowed = _swallowed(source, parameter, missing)
        value, doubt = read_value(parameter.text, signature.type_of(parameter.name), payload=parameter.payload)
        body.input[parameter.name] = value
        body.doubts.extend(f"parameter {parameter.name!r}: {what}" for what in (swallowed, doubt) if what)
    return body


def _parameters(source: Marked, first: int, *, last: int, doubts: list[str]) -> list[Parameter]:
    """The parameters among the tags from `first` to before `last`, the invoke's closer."""
    text, tags = source
    found: list[Parameter] = []
    index, at = first, tags[first - 1].end
    while index < last:
        if tags[index].name != "parameter" or tags[index].form == "close":
            index += 1  # it stands outside all parameters: the text with it is looked at below
            continue
        _check_outside(text[at : tags[index].start], found, doubts)
        found.append(_parameter(source, index, last))
        at, index = tags[found[-1].last].end, found[-1].last + 1
    if not is_blank(text[at : tags[last].start]):
        raise Refused(
            ("text stands behind its last parameter" if found else "it holds text, no parameter") + WRITE_CDATA
        )
    return found


def _check_outside(text: str, found: list[Parameter], doubts: list[str]) -> None:
    """Text before a parameter: words before the first one are let pass."""
    if is_blank(text):
        return
    if found:
        raise Refused("text stands between its parameters" + WRITE_CDATA)
    if MARKUP.search(text):
        raise Refused("markup stands before its first parameter" + WRITE_CDATA)
    doubts.append("text before its first parameter was left out")


def _parameter(source: Marked, opener: int, end: int) -> Parameter:
    """The parameter that is opened there and must be closed before the tag at `end`."""
    text, tags = source
    tag = tags[opener]
    name = attribute(tag.attributes, "name")
    if not name:
        raise Refused("a parameter has no name" + NOTHING_SENT)
    if tag.form == "empty":
        return Parameter(name, "", None, opener, opener)
    closer = next((at for at in range(opener + 1, end) if tags[at][:2] == ("parameter", "close")), end)
    if closer == end:
        raise Refused(f"parameter {name!r} is not closed" + WRITE_CDATA)
    if tag.payload is not None and not is_blank(text[tag.resume : tags[closer].start]):
        raise Refused(f"parameter {name!r} has text behind its CDATA section" + WRITE_CDATA)
    return Parameter(name, text[tag.end : tags[closer].start], tag.payload, opener, closer)


def _swallowed(source: Marked, parameter: Parameter, missing: Mapping[str, bool]) -> str:
    """Refuses a value that holds what was meant as the next parameter; a doubt, if it holds another opener."""
    doubt = ""
    for index in range(parameter.first + 1, parameter.last):
        tag = source.tags[index]
        if tag.name == "parameter":
            name = attribute(tag.attributes, "name")
            before = source.text[source.tags[index - 1].resume : tag.start].rstrip(WHITESPACE)
            if missing.get(name) or (name in missing and FOREIGN_CLOSER.search(before)):
                raise Refused(f"parameter {parameter.name!r} holds the opener of parameter {name!r}" + WRITE_CDATA)
            doubt = "its value holds the opener of another parameter"
    return doubt


MARKUP: Final = re.compile("<[A-Za-z/!?]")

# A closer as other dialects, or a slip, would write it: </param>, </x:parameter>, </parameter >.
FOREIGN_CLOSER: Final = re.compile(r"</(?:[\w.-]+:)?param(?:eter)?s?\s*>\Z", re.IGNORECASE)

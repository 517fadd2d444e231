"""decode: answers become the user's objects, or errors that say all that is wrong."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import pickle
import uuid
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import pytest
from shared_data import shared_json

from membrane_lite.errors import MembraneError
from membrane_lite.schema.decode import MAX_RAW, LlmContractViolation, decode, decode_text, decode_tool_input
from membrane_lite.schema.json_values import Violation


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    item: str
    count: int = 1


@dataclass
class Gift:
    kind: Literal["gift"]
    to: str


@dataclass
class Sale:
    kind: Literal["sale"]
    price: float


@dataclass
class Order:
    lines: list[Line]
    color: Color | None = None
    reason: Gift | Sale | None = None
    tags: set[str] = field(default_factory=set)
    by_name: dict[str, Line] = field(default_factory=dict)
    at: tuple[int, str] = (0, "")
    when: datetime.datetime | datetime.date | None = None
    first: Annotated[Line | None, "the first"] = None
    note: str = "none"


BUILT: dict[str, tuple[Any, Order]] = {
    "only what is required": ({"lines": []}, Order([])),
    "nested": ({"lines": [{"item": "tea"}, {"item": "milk", "count": 2}]}, Order([Line("tea"), Line("milk", 2)])),
    "an enum": ({"lines": [], "color": "blue"}, Order([], color=Color.BLUE)),
    "null": ({"lines": [], "color": None, "reason": None}, Order([])),
    "an alternative": ({"lines": [], "reason": {"kind": "gift", "to": "Ann"}}, Order([], reason=Gift("gift", "Ann"))),
    "the other": ({"lines": [], "reason": {"kind": "sale", "price": 3}}, Order([], reason=Sale("sale", 3.0))),
    "a set": ({"lines": [], "tags": ["a", "b"]}, Order([], tags={"a", "b"})),
    "a dict": ({"lines": [], "by_name": {"x": {"item": "tea"}}}, Order([], by_name={"x": Line("tea")})),
    "a tuple": ({"lines": [], "at": [3, "x"]}, Order([], at=(3, "x"))),
    "a described optional": ({"lines": [], "first": {"item": "tea"}}, Order([], first=Line("tea"))),
    "a whole number written with a point": ({"lines": [{"item": "tea", "count": 2.0}]}, Order([Line("tea", 2)])),
    "a moment": (
        {"lines": [], "when": "2024-05-01T12:00:00Z"},
        Order([], when=datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.timezone.utc)),
    ),
}


@pytest.mark.parametrize("given, built", BUILT.values(), ids=BUILT.keys())
def test_decode_tool_input_builds_a_dataclass(given: Any, built: Order) -> None:
    made = decode_tool_input(Order, given)
    assert made == built
    assert [type(line.count) for line in made.lines] == [int for _ in made.lines]


@dataclass
class Typed:
    day: datetime.date
    time: datetime.time
    id: uuid.UUID
    amount: decimal.Decimal
    weight: float
    scale: InitVar[int] = 1
    scaled: float = field(init=False, default=0.0)

    def __post_init__(self, scale: int) -> None:
        if self.weight < 0:
            raise ValueError("a weight is 0 or more")
        self.scaled = self.weight * scale


TYPED = {
    "day": "2024-05-01",
    "time": "12:30:00",
    "id": "12345678-1234-5678-1234-567812345678",
    "amount": "-1.50",
    "weight": 2,
    "scale": 3,
}


# As RFC 3339 has them, on every Python.
MOMENTS: dict[str, tuple[str, str]] = {
    "without a zone": ("12:30:00", "12:30:00"),
    "in UTC": ("12:30:00Z", "12:30:00+00:00"),
    "with a zone": ("12:30:00+02:00", "12:30:00+02:00"),
    "with tenths": ("12:30:00.5z", "12:30:00.500000+00:00"),
    "with more than microseconds": ("12:30:00.123456789", "12:30:00.123456"),
}


@pytest.mark.parametrize("text, read", MOMENTS.values(), ids=MOMENTS.keys())
def test_decode_tool_input_reads_times_and_moments(text: str, read: str) -> None:
    assert decode_tool_input(Typed, {**TYPED, "time": text}).time.isoformat() == read
    moment = decode_tool_input(Order, {"lines": [], "when": f"2024-05-01T{text}"}).when
    assert moment is not None and moment.isoformat() == f"2024-05-01T{read}"


def test_decode_tool_input_makes_of_texts_what_they_stand_for() -> None:
    made = decode_tool_input(Typed, TYPED)
    assert repr((made.day, made.time, made.id, made.amount, made.weight, made.scaled)) == (
        "(datetime.date(2024, 5, 1), datetime.time(12, 30), UUID('12345678-1234-5678-1234-567812345678'), "
        "Decimal('-1.50'), 2.0, 6.0)"
    )


@dataclass
class Moments:
    times: list[datetime.time] = field(default_factory=list)
    moments: list[datetime.datetime] = field(default_factory=list)


UTC = datetime.timezone.utc
MOMENTS: dict[str, tuple[dict[str, list[str]], Moments]] = {
    "a time with the Z of RFC 3339": ({"times": ["12:30:00Z"]}, Moments([datetime.time(12, 30, tzinfo=UTC)])),
    "a fraction of one digit": ({"times": ["12:30:00.5z"]}, Moments([datetime.time(12, 30, 0, 500_000, UTC)])),
    "of nine, which are cut": (
        {"moments": ["2024-05-01T12:30:00.123456789Z"]},
        Moments([], [datetime.datetime(2024, 5, 1, 12, 30, 0, 123_456, UTC)]),
    ),
    "of two, before another offset": (
        {"moments": ["2024-05-01T12:30:00.25-00:00"]},
        Moments([], [datetime.datetime(2024, 5, 1, 12, 30, 0, 250_000, UTC)]),
    ),
}


@pytest.mark.parametrize("given, built", MOMENTS.values(), ids=MOMENTS.keys())
def test_decode_of_moments_on_every_python(given: Any, built: Moments) -> None:
    assert decode(Moments, given) == built


@dataclass
class Named:
    id: uuid.UUID | datetime.date | str
    day: datetime.date | uuid.UUID | None = None


IDS: dict[str, tuple[dict[str, Any], Any]] = {
    "the first alternative": ({"id": "12345678-1234-5678-1234-567812345678"}, Named(uuid.UUID(TYPED["id"]))),
    "the next, where a text is none of the first": ({"id": "2024-05-01"}, Named(datetime.date(2024, 5, 1))),
    "the last takes any": ({"id": "Ann"}, Named("Ann")),
    "none takes it: told of the first": (
        {"id": "x", "day": "soon"},
        Violation("/day", "expected a date as 2024-05-01, found string \"soon\": Invalid isoformat string: 'soon'"),
    ),
}


@pytest.mark.parametrize("given, expected", IDS.values(), ids=IDS.keys())
def test_decode_of_a_text_tries_the_next_alternative(given: Any, expected: Any) -> None:
    try:
        found: Any = decode(Named, given)
    except LlmContractViolation as error:
        (found,) = error.violations
    assert found == expected


REFUSED_BY_TYPES: dict[str, tuple[dict[str, Any], list[Violation]]] = {
    "no date": (
        {"day": "2024-13-01"},
        [Violation("/day", 'expected a date as 2024-05-01, found string "2024-13-01": month must be in 1..12')],
    ),
    "no decimal number": (
        {"amount": "NaN"},
        [Violation("/amount", 'expected a string that matches ^-?[0-9]+(\\.[0-9]+)?$, found "NaN"')],
    ),
    "what the class itself refuses": (
        {"weight": -1},
        [Violation("", "expected what Typed takes, found an object with 6 properties: a weight is 0 or more")],
    ),
    "a number beyond every float": (
        {"weight": 10**400},
        [
            Violation(
                "/weight",
                f"expected a number, found integer of {(10**400).bit_length()} bits: int too large to convert to float",
            )
        ],
    ),
}


@pytest.mark.parametrize("changes, violations", REFUSED_BY_TYPES.values(), ids=REFUSED_BY_TYPES.keys())
def test_decode_tool_input_refuses_what_fits_the_schema_and_not_the_type(
    changes: dict[str, Any], violations: list[Violation]
) -> None:
    with pytest.raises(LlmContractViolation) as raised:
        decode_tool_input(Typed, {**TYPED, **changes})
    message = violations[0].message
    assert [violation.path for violation in raised.value.violations] == [violations[0].path]
    assert raised.value.violations[0].message[: len(message)] == message


def test_decode_lets_an_error_of_the_class_that_is_no_refusal_pass() -> None:
    @dataclass
    class Broken:
        it: int

        def __post_init__(self) -> None:
            raise KeyError("a fault of its own")

    with pytest.raises(KeyError):
        decode(Broken, {"it": 1})


class Film(TypedDict):
    title: str
    lead: Line
    colors: list[Color]


def test_decode_of_a_typed_dict_is_a_dict_with_built_parts() -> None:
    film: Film = decode(Film, {"title": "M", "lead": {"item": "x"}, "colors": ["red"]})
    assert film == {"title": "M", "lead": Line("x"), "colors": [Color.RED]}


def test_decode_of_a_mapping_gives_the_value_itself() -> None:
    value = {"a": [1], "b": None}
    assert decode({"type": "object"}, value) is value


# Classes that read themselves


class Refused(ValueError):
    """As pydantic's ValidationError."""

    def errors(self) -> list[dict[str, Any]]:
        return [
            {"loc": ("items", 0), "msg": "too dear"},
            {"loc": ("tagged", "items", "list[int]", 0, "int"), "msg": "in an alternative"},
            {"loc": ("tagged", "total"), "msg": "missing"},
            {"loc": (), "msg": "and no more"},
        ]


class Model:
    def __init__(self, items: list[int]) -> None:
        self.items = items

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        items = {"type": "array", "items": {"$ref": "#/$defs/Price"}}
        return {
            "$defs": {"Price": {"type": "integer"}},
            "type": "object",
            "properties": {"items": items},
            "required": ["items"],
        }

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if value["items"] and value["items"][0] > 99:
            raise Refused("2 errors")
        return cls(value["items"])


@dataclass
class Shop:
    model: Model
    others: list[Model | None]


def test_decode_tool_input_lets_a_class_read_itself() -> None:
    assert decode_tool_input(Model, {"items": "[1, 2]"}).items == [1, 2]
    shop = decode_tool_input(Shop, {"model": {"items": [3]}, "others": [None, {"items": []}]})
    assert (shop.model.items, [other and other.items for other in shop.others]) == ([3], [None, []])


def test_decode_tool_input_tells_what_a_class_refuses_with_its_places() -> None:
    with pytest.raises(LlmContractViolation) as raised:
        decode_tool_input(Shop, {"model": {"items": [100]}, "others": []})
    assert raised.value.violations == (
        Violation("/model/items/0", "too dear"),
        Violation("/model/items/0", "in an alternative"),
        Violation("/model/total", "missing"),
        Violation("/model", "and no more"),
    )


def test_decode_tool_input_refuses_excess_though_the_schema_says_nothing_of_it() -> None:
    with pytest.raises(LlmContractViolation) as raised:
        decode_tool_input(Model, {"items": [], "more": 1})
    assert raised.value.violations == (Violation("/more", 'no property "more" is declared; expected only "items"'),)


# The repair

PLAIN = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"type": "integer"}},
        "inner": {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "string"}}},
        "maybe": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        "any": {},
        "text": {"type": "string"},
    },
}

REPAIRED: dict[str, tuple[Any, Any]] = {
    "a list": ({"items": "[1, 2]"}, {"items": [1, 2]}),
    "an object": ({"inner": ' {"a": []} '}, {"inner": {"a": []}}),
    "an optional list": ({"maybe": "[1]"}, {"maybe": [1]}),
    "two of them, and the rest as it is": (
        {"items": "[]", "inner": "{}", "text": "x"},
        {"items": [], "inner": {}, "text": "x"},
    ),
    "a text that is wanted stays one": ({"text": "[1]", "any": "[1]"}, {"text": "[1]", "any": "[1]"}),
    "a text that is wanted stays one beside a repair": ({"text": "[1]", "items": "[1]"}, {"text": "[1]", "items": [1]}),
}


@pytest.mark.parametrize("given, repaired", REPAIRED.values(), ids=REPAIRED.keys())
def test_decode_tool_input_repairs_a_container_in_a_text(given: Any, repaired: Any) -> None:
    assert decode_tool_input(PLAIN, given) == repaired


UNREPAIRED: dict[str, tuple[Any, list[Violation]]] = {
    "encoded twice": (
        {"items": '"[1]"'},
        [Violation("/items", 'expected array, found string "\\"[1]\\""')],
    ),
    "below the top level": (
        {"inner": {"a": "[1]"}},
        [Violation("/inner/a", 'expected array, found string "[1]"')],
    ),
    "what is in it does not fit": (
        {"items": '["a"]'},
        [Violation("/items", 'expected array, found string "[\\"a\\"]"')],
    ),
    "another fault remains": (
        {"items": "[1]", "text": 3},
        [
            Violation("/items", 'expected array, found string "[1]"'),
            Violation("/text", "expected string, found integer 3"),
        ],
    ),
    "it is cut off": ({"items": "[1, 2"}, [Violation("/items", 'expected array, found string "[1, 2"')]),
    "it holds NaN": ({"items": "[NaN]"}, [Violation("/items", 'expected array, found string "[NaN]"')]),
    "the other kind of container": ({"items": "{}"}, [Violation("/items", 'expected array, found string "{}"')]),
    "a property that nobody declared": (
        {"more": "[1]"},
        [
            Violation(
                "/more",
                'no property "more" is declared; expected only "items", "inner", "maybe", "any", "text"',
            )
        ],
    ),
    "the whole": ('{"items": []}', [Violation("", 'expected object, found string "{\\"items\\": []}"')]),
    "no object": ([], [Violation("", "expected object, found an array of 0 items")]),
}


@pytest.mark.parametrize("given, violations", UNREPAIRED.values(), ids=UNREPAIRED.keys())
def test_decode_tool_input_tells_what_it_does_not_repair_as_it_came(given: Any, violations: list[Violation]) -> None:
    with pytest.raises(LlmContractViolation) as raised:
        decode_tool_input(PLAIN, given)
    assert list(raised.value.violations) == violations


def test_decode_repairs_nothing() -> None:
    with pytest.raises(LlmContractViolation) as raised:
        decode(PLAIN, {"items": "[1]"})
    assert raised.value.violations == (Violation("/items", 'expected array, found string "[1]"'),)


def test_a_shared_case() -> None:
    case = shared_json("cases/structured-double-encoded-list.json")
    given = case["input"]
    assert decode_tool_input(given["schema"], given["tool_input"]) == case["expected"]["value"]


# Errors


def error_of(schema: Any, given: Any) -> LlmContractViolation:
    with pytest.raises(LlmContractViolation) as raised:
        decode_tool_input(schema, given)
    return raised.value


def test_decode_tool_input_of_an_answer_without_the_call_says_so() -> None:
    error = error_of(Order, None)
    assert (error.message, error.violations, error.raw) == (
        "the model answered without calling the tool: there is no input to decode",
        (),
        "",
    )


def test_decode_tool_input_errors_hold_all_that_is_wrong() -> None:
    error = error_of(Line, {"count": "x", "more": "\u00e9"})
    told = (
        'the answer does not fit its schema: the whole: the required property "item" is missing; '
        '/more: no property "more" is declared; expected only "item", "count"; '
        '/count: expected integer, found string "x"; the answer: {"count":"x","more":"\u00e9"}'
    )
    assert error.to_dict() == {
        "type": "unknown",
        "message": told,
        "retryable": False,
        "provider_error_code": "contract_violation",
    }
    assert error.raw == '{"count":"x","more":"\u00e9"}'
    assert isinstance(error, MembraneError)


def test_decode_tool_input_tells_five_violations_and_holds_all() -> None:
    error = error_of({"type": "object", "properties": {"a": {"items": False}}}, {"a": [0] * 7})
    assert error.message == (
        "the answer does not fit its schema: "
        + "; ".join(f"/a/{index}: expected nothing here, found integer 0" for index in range(5))
        + '; and 2 more; the answer: {"a":[0,0,0,0,0,0,0]}'
    )
    assert len(error.violations) == 7


RAW: dict[str, tuple[Any, str]] = {
    "cut after 800 characters": ({"item": 1, "x": "y" * 900}, f'{{"item":1,"x":"{"y" * 785}'),
    "not JSON": ({"item": {1}}, "{'item': {1}}"),
}


@pytest.mark.parametrize("given, raw", RAW.values(), ids=RAW.keys())
def test_decode_tool_input_keeps_max_raw_characters_of_the_answer(given: Any, raw: str) -> None:
    error = error_of(Line, given)
    assert error.raw == raw
    assert error.message.endswith(f"; the answer: {raw}")
    assert len(error.raw) <= MAX_RAW == 800


def test_decode_tool_input_errors_can_be_copied() -> None:
    error = error_of(Line, {})
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (twin.message, twin.violations, twin.raw, twin.to_dict()) == (
            error.message,
            error.violations,
            error.raw,
            error.to_dict(),
        )


@dataclass
class Node:
    next: Node | None = None
    kids: list[Node] = field(default_factory=list)


def chain(length: int) -> Any:
    value: Any = {}
    for _ in range(length):
        value = {"next": value}
    return value


def length_of(node: Node | None) -> int:
    length = 0
    while node is not None:
        length, node = length + 1, node.next
    return length


def test_decode_tool_input_builds_256_levels() -> None:
    assert length_of(decode_tool_input(Node, chain(256))) == 257


@pytest.mark.parametrize("depth", [257, 100_000])
def test_decode_tool_input_of_more_is_a_violation(depth: int) -> None:
    assert [violation.message for violation in error_of(Node, chain(depth)).violations] == [
        "the value is nested deeper than 256 levels"
    ]


# Texts


def test_decode_text_reads_the_json_in_it() -> None:
    text = 'Here:\n```json\n{"item": "tea", "count": 2}\n```'
    assert decode_text(Line, text) == Line("tea", 2)
    schema: Mapping[str, Any] = {"type": "object", "properties": {"a": {"type": "array"}}}
    assert decode_text(schema, '{"a": "[1]"}') == {"a": [1]}


TEXTS = {
    "no JSON": ("I cannot.", "the answer holds no JSON object; the answer: I cannot."),
    "cut off": ('{"item": "te', 'the answer holds no JSON object; the answer: {"item": "te'),
    "NaN": ('{"count": NaN}', 'NaN is not JSON; the answer: {"count": NaN}'),
    "null": ("null", "the answer does not fit its schema: the whole: expected object, found null; the answer: null"),
}


@pytest.mark.parametrize("text, message", TEXTS.values(), ids=TEXTS.keys())
def test_decode_text_without_an_answer(text: str, message: str) -> None:
    with pytest.raises(LlmContractViolation) as raised:
        decode_text(Line, text)
    assert raised.value.message == message

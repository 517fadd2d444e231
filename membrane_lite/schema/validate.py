"""Whether a value fits a JSON Schema, and where it does not: every violation with its JSON Pointer.

    validate({"type": "array", "items": {"type": "integer"}}, [1, "2"])
    -> [Violation("/1", 'expected integer, found string "2"')]

The keywords are those of KEYWORDS (keywords.py); others are ignored. A property that holds an empty name is pointed at
as "/". The work is a list that grows as it is walked, so only alternatives (anyOf, oneOf, not) go down in Python's own
stack, and what came of trying one is remembered: the time is linear in the value, whatever the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..values.base import Value
from . import keywords
from .json_values import ROOT, Place, Violation, equality_key, kind_of, told
from .keywords import KEYWORDS, is_of_type
from .prepare import Prepared, prepare

DEEPEST: Final = 256  # containers in containers; deeper is a violation
TOO_DEEP: Final = f"the value is nested deeper than {DEEPEST} levels"


def validate(schema: Any, value: Any, *, closed: bool = False) -> list[Violation]:
    """Everything in `value` that does not fit `schema`, the outermost first; an empty list: it fits.

    closed: an object takes only properties that some schema applied to it declares, also where none of them says
    `additionalProperties: false`. One without any declared properties stays open.
    Raises MembraneError("invalid_request") for a schema that cannot be applied: a bad pattern, a reference to nothing.
    """
    return Validation(prepare(schema), value, closed=closed).violations()


class Declared(Value):
    """`properties` are known of the object `value`; None: a schema judges all others by itself."""

    __slots__ = ("place", "properties", "value")

    def __init__(self, value: Any, place: Place, properties: Mapping[str, Any] | None) -> None:
        self.value: Final = value
        self.place: Final = place
        self.properties: Final = properties


class Verdict:
    """What came of applying a schema to a value. journal: Declared, and the journals of alternatives that fit."""

    __slots__ = ("journal", "until_first", "violations")

    def __init__(self, *, until_first: bool) -> None:
        self.until_first: Final = until_first  # only whether it fits is asked
        self.violations: Final[list[Violation]] = []
        self.journal: Final[list[Any]] = []

    @property
    def fits(self) -> bool:
        return not self.violations


class Validation:
    """One prepared schema and one value, with what is already known of their parts."""

    def __init__(self, prepared: Prepared, value: Any, *, closed: bool = False) -> None:
        self.prepared: Final = prepared
        self.closed: Final = closed
        self._value: Final = value  # held, so that the ids below stay those of its parts
        self._known: Final[dict[tuple[int, int], Verdict]] = {}

    def violations(self) -> list[Violation]:
        try:
            verdict = self.apply(self.prepared.root, self._value, ROOT)
            return verdict.violations + (list(_excess(verdict)) if self.closed else [])
        except RecursionError:  # where the caller stands deep in the stack, or items to compare are nested too deep
            return [Violation("", TOO_DEEP)]

    def apply(self, schema: Any, value: Any, place: Place, *, until_first: bool = False) -> Verdict:
        """All violations; or, of one alternative among several, the first, remembered."""
        key = (id(schema), id(value))
        if until_first and key in self._known:
            return self._known[key]
        verdict = Verdict(until_first=until_first)
        work: list[tuple[Any, Any, Place]] = [(schema, value, place)]
        for at_schema, at_value, at_place in work:
            step = Step(self, at_schema, at_value, place=at_place, work=work, verdict=verdict)
            kind = step.kind()
            for keyword, given in at_schema.items() if kind else ():
                known = KEYWORDS.get(keyword)
                if known is not None and known.kind in (None, kind):
                    known.check(given, step)
            if until_first and verdict.violations:
                break
        if until_first and isinstance(value, (dict, list)):
            self._known[key] = verdict
        return verdict

    def fits(self, schema: Any, value: Any, place: Place = ROOT) -> bool:
        """Whether a part of the value fits a part of the schema."""
        return self.apply(schema, value, place, until_first=True).fits

    def target(self, schema: Any) -> Any:
        """The schema itself, not a reference to it."""
        while isinstance(schema, Mapping) and "$ref" in schema:
            schema = self.prepared.refs[schema["$ref"]]
        return schema


class Step:
    """One schema applied to one value, as the checks in keywords.py see it."""

    __slots__ = ("_place", "_validation", "_verdict", "_work", "schema", "value")

    def __init__(
        self,
        validation: Validation,
        schema: Any,
        value: Any,
        *,
        place: Place,
        work: list[tuple[Any, Any, Place]],
        verdict: Verdict,
    ) -> None:
        self.schema: Final = schema
        self.value: Final = value
        self._validation: Final = validation
        self._place: Final = place
        self._work: Final = work
        self._verdict: Final = verdict

    @property
    def prepared(self) -> Prepared:
        return self._validation.prepared

    def kind(self) -> str | None:
        """The value's kind; None where there is nothing to check, or nothing more."""
        kind = kind_of(self.value)
        if self._place.depth > DEEPEST:
            self.fail(TOO_DEEP)
        elif self.schema is False:
            self.fail(f"expected nothing here, found {told(self.value)}")
        elif kind is None:
            self.fail(f"expected a JSON value, found {told(self.value)}")
        elif self.schema is not True:
            return kind
        return None

    def fail(self, message: str) -> None:
        """The value is wrong. Where is not written out for an attempt: only that it fails will be read."""
        pointer = "" if self._verdict.until_first else self._place.pointer()
        self._verdict.violations.append(Violation(pointer, message))

    def fail_in(self, key: str, message: str) -> None:
        """A part of it is."""
        self._verdict.violations.append(Violation(self._place.inner(key).pointer(), message))

    def go(self, schema: Any, key: str | int) -> None:
        """`schema` holds for the part at `key`."""
        self._work.append((schema, self.value[key], self._place.inner(key)))

    def also(self, schema: Any) -> None:
        """`schema` holds for the value too."""
        self._work.append((schema, self.value, self._place))

    def attempt(self, schema: Any) -> Verdict:
        """Whether `schema` would."""
        return self._validation.apply(schema, self.value, self._place, until_first=True)

    def adopt(self, verdict: Verdict) -> None:
        """What an attempt that fits has declared, counts here."""
        if verdict.journal:
            self._verdict.journal.append(verdict.journal)

    def declare(self, properties: Mapping[str, Any] | None) -> None:
        """These properties are known of the value; None: the schema judges all others by itself."""
        if self._validation.closed:
            self._verdict.journal.append(Declared(self.value, self._place, properties))

    def none_fits(self, alternatives: Sequence[Any]) -> None:
        """Where only one alternative was meant, what is wrong with it; else that none fits."""
        if self._verdict.until_first:
            self.fail("fits none of the alternatives")
            return
        pairs = [(schema, self._validation.target(schema)) for schema in alternatives]
        of_kind = [(schema, target) for schema, target in pairs if _admits_kind(target, self.value)]
        meant = [schema for schema, target in of_kind if _wrong_constant(target, self.value) is None]
        if len(meant) == 1:
            verdict = self._validation.apply(meant[0], self.value, self._place)
            self._verdict.violations.extend(verdict.violations)
        elif not of_kind:
            self.fail(f"expected {_kinds([target for _, target in pairs])}, found {told(self.value)}")
        elif not meant:
            self._wrong_constants([target for _, target in of_kind])
        else:
            self.fail(f"expected one of {len(pairs)} alternatives, found {told(self.value)}, which fits none")

    def _wrong_constants(self, targets: Sequence[Mapping[str, Any]]) -> None:
        for name in dict.fromkeys(_wrong_constant(target, self.value) for target in targets):
            self.fail_in(str(name), f"{_constants(str(name), targets)}, found {told(self.value[name])}")


def _admits_kind(target: Any, value: Any) -> bool:
    if not isinstance(target, Mapping):
        return False
    names = target.get("type", [])
    return not names or any(is_of_type(value, name) for name in ([names] if isinstance(names, str) else names))


def _wrong_constant(target: Mapping[str, Any], value: Any) -> str | None:
    """The property whose constant, by which one kind of object is told from another, is not the value's."""
    properties = target.get("properties", {}).items() if isinstance(value, dict) else ()
    constants = [
        (name, inner["const"]) for name, inner in properties if isinstance(inner, Mapping) and "const" in inner
    ]
    wrong = (name for name, given in constants if name in value and equality_key(value[name]) != equality_key(given))
    return next(wrong, None)


def _kinds(targets: Sequence[Any]) -> str:
    names = [target.get("type") if isinstance(target, Mapping) else None for target in targets]
    plain = [name for name in names if isinstance(name, str)]
    return " or ".join(dict.fromkeys(plain)) if len(plain) == len(names) else f"one of {len(names)} alternatives"


def _constants(name: str, targets: Sequence[Mapping[str, Any]]) -> str:
    schemas = [target.get("properties", {}).get(name) for target in targets]
    values = [schema["const"] for schema in schemas if isinstance(schema, Mapping) and "const" in schema]
    return f"expected one of {keywords.listed(values)}"


def _excess(verdict: Verdict) -> Iterator[Violation]:
    """Properties that no schema declares, of objects of which some are declared."""
    objects: dict[int, list[Declared]] = {}
    for declared in _entries(verdict.journal):
        objects.setdefault(id(declared.value), []).append(declared)
    for found in objects.values():
        if any(declared.properties is None for declared in found):
            continue
        known = {name: schema for declared in found for name, schema in (declared.properties or {}).items()}
        for name in found[0].value:
            if name not in known:
                yield Violation(found[0].place.inner(name).pointer(), keywords.excess(name, known))


def _entries(journal: list[Any]) -> Iterator[Declared]:
    """Each once, also where two alternatives remembered the same."""
    seen = {id(journal)}
    work = [journal]
    for entries in work:
        for entry in entries:
            if isinstance(entry, Declared):
                yield entry
            elif id(entry) not in seen:
                seen.add(id(entry))
                work.append(entry)

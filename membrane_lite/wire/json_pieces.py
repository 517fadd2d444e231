"""Values named by their places, one after another, into the text of one JSON object, piece by piece.

    $.city "Be" (to be continued), $.city "rn", $.days[0] 1    ->    {   "city":"Be   rn"   ,"days":[1   ]}

The values come in the order of the text, so a place that was left is not come back to: that is a ValueError. The text
is complete only after `end`; what stands before is its beginning, which is no JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Union

from .json_text import compact, parse

Step = Union[str, int]

# RFC 9535, 2.7 "Normalized Paths", and the shorthand .name of its 2.5.1: $.a.b[0], $['a']["b c"][0]
STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>[0-9]+)\]|\['(?P<single>(?:[^'\\]|\\.)*)'\]|\["(?P<double>(?:[^"\\]|\\.)*)"\]"""
)


def steps_of(path: str) -> tuple[Step, ...]:
    """The names and indices of a path. Raises ValueError where it is none."""
    steps: list[Step] = []
    at = 1
    while at < len(path) and path[0] == "$":
        found = STEP.match(path, at)
        if found is None:
            break
        steps.append(_step(found))
        at = found.end()
    if not steps or at < len(path):
        raise ValueError(f"{path!r} is no path to a value")
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["index"] is not None:
        return int(found["index"])
    if found["single"] is not None:
        return str(parse('"' + found["single"].replace("\\'", "'").replace('"', '\\"') + '"'))
    return str(parse(f'"{found["double"]}"')) if found["double"] is not None else found["name"]


class Container:
    """An object or array that is open. written: the names, or indices, of its members."""

    def __init__(self, is_array: bool) -> None:
        self._is_array: Final = is_array
        self._written: Final[set[Step]] = set()

    @property
    def close(self) -> str:
        return "]" if self._is_array else "}"

    def member(self, step: Step) -> str:
        """What stands before the value of one more member."""
        if step in self._written or isinstance(step, int) is not self._is_array:
            raise ValueError(f"{step!r} is not the place of the next value")
        comma = "," if self._written else ""
        self._written.add(step)
        return comma if self._is_array else f"{comma}{compact(step)}:"


class ObjectText:
    """The text of one object. Each method gives the piece it adds."""

    def __init__(self) -> None:
        self._containers: Final[list[Container]] = []
        self._path: Final[list[Step]] = []  # of the innermost container
        self._open_string: tuple[Step, ...] | None = None

    def begin(self) -> str:
        self._containers.append(Container(is_array=False))
        return "{"

    def add(self, path: Sequence[Step], value: Any, *, continues: bool) -> str:
        """A value at its place. continues: it is a string whose rest is still to come, at the same place."""
        place = tuple(path)
        if self._open_string == place and isinstance(value, str):
            text = compact(value)[1:-1]
        else:
            text = self._up_to(place) + (compact(value)[:-1] if isinstance(value, str) else compact(value))
        if not isinstance(value, str):
            return text
        self._open_string = place if continues else None
        return text if continues else text + '"'

    def end(self) -> str:
        text = self._end_string() + "".join(container.close for container in reversed(self._containers))
        self._containers.clear()
        return text

    def _up_to(self, place: tuple[Step, ...]) -> str:
        """What stands between the last value and the one at `place`: ends of containers, a comma, begins, a name."""
        common = 0
        while common < min(len(self._path), len(place) - 1) and self._path[common] == place[common]:
            common += 1
        text = self._end_string()
        while len(self._path) > common:
            self._path.pop()
            text += self._containers.pop().close
        for step, next_step in zip(place[common:-1], place[common + 1 :]):
            text += self._containers[-1].member(step)
            container = Container(is_array=isinstance(next_step, int))
            text += "[" if isinstance(next_step, int) else "{"
            self._containers.append(container)
            self._path.append(step)
        return text + self._containers[-1].member(place[-1])

    def _end_string(self) -> str:
        was_open, self._open_string = self._open_string is not None, None
        return '"' if was_open else ""

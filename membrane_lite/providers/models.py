"""What model families take, as rows: the longest prefix of the bare model id wins. Facts only; nothing else names one.

Source: platform.claude.com/docs/en/about-claude/models and the API's own refusals, September 2026. A model that is in
no row gets its provider's newest documented form, which is the most restrictive one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ..errors import MembraneError, unknown_field, wrong_type
from ..pricing import bare_model_id, family_names


class ModelTraits(NamedTuple):
    """sampling: takes temperature, top_p, top_k. prefill: an answer may be begun for it. stop: takes stop sequences.

    thinking_parameter: takes `thinking`; a model that always thinks may take none. interleaved_beta: needs a beta to
    think between tool calls. max_tokens_field: the body's name for the limit.
    """

    sampling: bool = True
    prefill: bool = True
    stop: bool = True
    thinking_parameter: bool = True
    interleaved_beta: bool = False
    max_tokens_field: str = "max_tokens"


CLAUDE_NEWEST: Final = ModelTraits(sampling=False, prefill=False)
CLAUDE_4: Final = ModelTraits(interleaved_beta=True)
CLAUDE_46: Final = ModelTraits(prefill=False)
CLAUDE_ALWAYS_THINKS: Final = ModelTraits(sampling=False, prefill=False, thinking_parameter=False)

CLAUDE_MODELS: Final[Mapping[str, ModelTraits]] = {
    "claude-2": ModelTraits(),
    "claude-3": ModelTraits(),
    "claude-instant": ModelTraits(),
    "claude-opus-4": CLAUDE_4,
    "claude-sonnet-4": CLAUDE_4,
    "claude-haiku-4": CLAUDE_4,
    "claude-opus-4-6": CLAUDE_46,
    "claude-sonnet-4-6": CLAUDE_46,
    "claude-haiku-4-6": CLAUDE_46,
    **{f"claude-{name}-4-{minor}": CLAUDE_NEWEST for name in ("opus", "sonnet", "haiku") for minor in (7, 8, 9)},
    "claude-opus-5": CLAUDE_NEWEST,
    "claude-sonnet-5": CLAUDE_NEWEST,
    "claude-haiku-5": CLAUDE_NEWEST,
    "claude-fable": CLAUDE_ALWAYS_THINKS,
    "claude-mythos": CLAUDE_ALWAYS_THINKS,
}


class ModelTable:
    """Rows of one provider, a caller's own rows over them."""

    def __init__(
        self,
        rows: Mapping[str, ModelTraits],
        newest: ModelTraits,
        model_traits: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._newest: Final = newest
        self._rows: Final = {**rows}
        if model_traits is not None and not isinstance(model_traits, Mapping):
            raise wrong_type("model_traits", model_traits, "a mapping of model ids to traits")
        for prefix, traits in (model_traits or {}).items():
            self._rows[prefix] = checked(traits, f"model_traits[{prefix!r}]", self._look_up(prefix))
        self.traits: Final = lru_cache(maxsize=256)(self._look_up)

    def _look_up(self, model: str) -> ModelTraits:
        """The row whose prefix of the id, bare or as given, is the longest."""
        named = [*family_names(model), *family_names(bare_model_id(model))]
        rows = [prefix for prefix in named if prefix in self._rows]
        return self._rows[max(rows, key=len)] if rows else self._newest


def checked(given: Mapping[str, Any], path: str, base: ModelTraits) -> ModelTraits:
    """`base` with the caller's fields over it. Raises "invalid_request" for a field that is none."""
    if not isinstance(given, Mapping):
        raise wrong_type(path, given, "a mapping of model traits")
    for name, value in given.items():
        if name not in ModelTraits._fields:
            raise unknown_field(path, name, ModelTraits._fields)
        if type(value) is not type(getattr(ModelTraits(), name)):
            raise wrong_type(f"{path}.{name}", value, type(getattr(ModelTraits(), name)).__name__)
    return base._replace(**given)


# A refused parameter -> the trait that leaves it out.
TRAIT_OF_PARAMETER: Final[Mapping[str, str]] = {
    "temperature": "'sampling': False",
    "top_p": "'sampling': False",
    "top_k": "'sampling': False",
    "thinking": "'thinking_parameter': False",
    "stop": "'stop': False",
    "prefill": "'prefill': False",
    "max_tokens": "'max_tokens_field': 'max_completion_tokens'",
    "max_completion_tokens": "'max_tokens_field': 'max_tokens'",
}


REFUSES_PARAMETER: Final = re.compile(r"not support|unsupported|not allowed|not permitted|deprecated|unexpected", re.I)
WORD: Final = re.compile(r"\w+")


def advice(error: MembraneError, model: str) -> str:
    """What to say under a refusal that names a parameter: the trait that would leave it out; "" for any other."""
    if error.http_status not in (400, 422) or REFUSES_PARAMETER.search(error.message) is None:
        return ""
    words = set(WORD.findall(error.message))
    named = [trait for parameter, trait in TRAIT_OF_PARAMETER.items() if parameter in words]
    return f" (model_traits={{{model!r}: {{{named[0]}}}}} on the adapter leaves it out)" if named else ""

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
    think between tool calls. max_tokens_field: the body's name for the limit. image_input: can be shown images.
    temperature_excludes_top_p: takes either of them, not both. dynamic_thinking_budget: to think as it sees fit it must
    be given a budget of -1. response_modalities: must be asked for these, where an answer is to have them.
    signed_images: takes an image in a turn of its own only with the signature it came with. forced_tool: can be made to
    call a tool. output_schema: can be held to the schema of its answer; output_beside_tools: where it has tools, too.
    """

    sampling: bool = True
    prefill: bool = True
    stop: bool = True
    thinking_parameter: bool = True
    interleaved_beta: bool = False
    max_tokens_field: str = "max_tokens"
    image_input: bool = True
    temperature_excludes_top_p: bool = False
    dynamic_thinking_budget: bool = False
    response_modalities: tuple[str, ...] = ()
    signed_images: bool = False
    forced_tool: bool = True
    output_schema: bool = True
    output_beside_tools: bool = True


# Tools that must be called: docs/en/agents-and-tools/tool-use/implement-tool-use; answers of a schema, from 4.5 on:
# docs/en/build-with-claude/structured-outputs.
CLAUDE_3: Final = ModelTraits(output_schema=False)
CLAUDE_4: Final = ModelTraits(interleaved_beta=True, output_schema=False)
CLAUDE_45: Final = ModelTraits(interleaved_beta=True)
CLAUDE_46: Final = ModelTraits(prefill=False)
CLAUDE_47: Final = ModelTraits(sampling=False, prefill=False)
CLAUDE_NEWEST: Final = CLAUDE_47._replace(forced_tool=False)
CLAUDE_ALWAYS_THINKS: Final = CLAUDE_NEWEST._replace(thinking_parameter=False)

CLAUDE_MODELS: Final[Mapping[str, ModelTraits]] = {
    "claude-2": CLAUDE_3,
    "claude-3": CLAUDE_3,
    "claude-instant": CLAUDE_3,
    "claude-opus-4": CLAUDE_4,
    "claude-sonnet-4": CLAUDE_4,
    "claude-haiku-4": CLAUDE_4,
    "claude-opus-4-5": CLAUDE_45,
    "claude-sonnet-4-5": CLAUDE_45,
    "claude-haiku-4-5": CLAUDE_45,
    "claude-opus-4-6": CLAUDE_46,
    "claude-sonnet-4-6": CLAUDE_46,
    "claude-haiku-4-6": CLAUDE_46,
    **{f"claude-{name}-4-{minor}": CLAUDE_47 for name in ("opus", "sonnet", "haiku") for minor in (7, 8, 9)},
    "claude-opus-5": CLAUDE_47,
    "claude-sonnet-5": CLAUDE_47,
    "claude-haiku-5": CLAUDE_47,
    **{f"claude-{name}-5-5": CLAUDE_NEWEST for name in ("opus", "sonnet", "haiku")},
    "claude-fable": CLAUDE_ALWAYS_THINKS,
    "claude-mythos": CLAUDE_ALWAYS_THINKS,
    "claude-fable-5": CLAUDE_ALWAYS_THINKS._replace(forced_tool=True),
    "claude-mythos-5": CLAUDE_ALWAYS_THINKS._replace(forced_tool=True),
    **{f"claude-{name}-5-{minor}": CLAUDE_ALWAYS_THINKS for name in ("fable", "mythos") for minor in (1, 2)},
}

# From GPT-5 on, whatever the minor version, and in the o series: models that reason
# (platform.openai.com/docs/guides/reasoning; the API refuses the rest with unsupported_parameter).
GPT_NEWEST: Final = ModelTraits(sampling=False, stop=False, max_tokens_field="max_completion_tokens")
GPT_TEXT: Final = ModelTraits(image_input=False, output_schema=False)
GPT_SEARCH: Final = ModelTraits(sampling=False, image_input=False)
GPT_BEFORE_5: Final[Mapping[str, ModelTraits]] = {
    "gpt-3": GPT_TEXT,
    "gpt-4": GPT_TEXT,
    "gpt-4-turbo": ModelTraits(output_schema=False),
    "gpt-4.1": ModelTraits(),
    "gpt-4.5": ModelTraits(),
    "gpt-4o": ModelTraits(),
    "gpt-4o-2024-05-13": ModelTraits(output_schema=False),
    "gpt-4o-audio-preview": GPT_TEXT,
    "gpt-4o-mini-audio-preview": GPT_TEXT,
    "gpt-4o-search-preview": GPT_SEARCH,
    "gpt-4o-mini-search-preview": GPT_SEARCH,
    "chatgpt-4o": ModelTraits(),
    "gpt-audio": GPT_TEXT,
}
GPT_MODELS: Final[Mapping[str, ModelTraits]] = {
    **GPT_BEFORE_5,
    **{f"ft:{name}": traits for name, traits in GPT_BEFORE_5.items()},  # fine-tuned: "ft:gpt-4o-mini:org::id"
    "gpt-5": GPT_NEWEST,
    "gpt-6": GPT_NEWEST,
    "o1": GPT_NEWEST._replace(stop=True),
    "o1-mini": GPT_NEWEST._replace(stop=True, image_input=False, output_schema=False),
    "o3": GPT_NEWEST,
    "o3-mini": GPT_NEWEST._replace(image_input=False),
    "o4-mini": GPT_NEWEST,
}

# OpenRouter leaves out what a model does not take, but passes both of these on to Claude, which refuses them together.
OPENROUTER_MODELS: Final[Mapping[str, ModelTraits]] = {"claude": ModelTraits(temperature_excludes_top_p=True)}

# Thinking: ai.google.dev/gemini-api/docs/thinking; images out: ai.google.dev/gemini-api/docs/image-generation. Before
# Gemini 3 "Function calling with a response mime type: 'application/json' is unsupported"; what draws or speaks answers
# no request for JSON at all (google-gemini/cookbook#1028).
GEMINI_NEWEST: Final = ModelTraits(signed_images=True)
GEMINI_THOUGHTLESS: Final = ModelTraits(thinking_parameter=False, output_beside_tools=False)
GEMINI_MEDIA: Final = GEMINI_THOUGHTLESS._replace(output_schema=False)
TEXT_AND_IMAGE: Final = ("TEXT", "IMAGE")
GEMINI_MODELS: Final[Mapping[str, ModelTraits]] = {
    "gemini-1": GEMINI_THOUGHTLESS,
    "gemini-2": GEMINI_THOUGHTLESS,
    "gemini-2.0-flash-exp-image-generation": GEMINI_MEDIA._replace(response_modalities=TEXT_AND_IMAGE),
    "gemini-2.0-flash-preview-image-generation": GEMINI_MEDIA._replace(response_modalities=TEXT_AND_IMAGE),
    "gemini-2.5": ModelTraits(dynamic_thinking_budget=True, output_beside_tools=False),
    "gemini-2.5-flash-image": GEMINI_MEDIA._replace(response_modalities=TEXT_AND_IMAGE),
    "gemini-2.5-flash-preview-tts": GEMINI_MEDIA._replace(response_modalities=("AUDIO",)),
    "gemini-2.5-pro-preview-tts": GEMINI_MEDIA._replace(response_modalities=("AUDIO",)),
    "gemini-3-pro-image": GEMINI_NEWEST._replace(response_modalities=TEXT_AND_IMAGE),
    "gemini-3.1-flash-image": GEMINI_NEWEST._replace(response_modalities=TEXT_AND_IMAGE),
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
        """The row whose prefix of the id, bare or as given, is the longest. "gpt-5" speaks for "gpt-5.6" too."""
        given = [model, bare_model_id(model)]
        named = [name for each in given for name in (*family_names(each), *family_names(MINOR_VERSION.sub("", each)))]
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


MINOR_VERSION: Final = re.compile(r"(?<=[0-9])\.[0-9]+")

# A refused parameter -> the trait that leaves it out.
TRAIT_OF_PARAMETER: Final[Mapping[str, str]] = {
    "temperature": "'sampling': False",
    "top_p": "'sampling': False",
    "top_k": "'sampling': False",
    "thinking": "'thinking_parameter': False",
    "Thinking": "'thinking_parameter': False",  # Gemini's prose
    "modalities": "'response_modalities': ()",
    "stop": "'stop': False",
    "prefill": "'prefill': False",
    "max_tokens": "'max_tokens_field': 'max_completion_tokens'",
    "max_completion_tokens": "'max_tokens_field': 'max_tokens'",
    "tool_choice": "'forced_tool': False",
    "response_format": "'output_schema': False",
    "json_schema": "'output_schema': False",
}


REFUSES_PARAMETER: Final = re.compile(
    r"not support|unsupported|not allowed|not permitted|deprecated|unexpected|unavailable", re.I
)
WORD: Final = re.compile(r"\w+")


def refuses_system_role(error: MembraneError) -> bool:
    """Whether it says of a request's system messages that the model takes none:

    "role 'system' is not supported on this model"; 'Unexpected role "system"', where no model takes them yet.
    """
    words = set(WORD.findall(error.message.lower()))
    refused = error.http_status == 400 and error.type == "invalid_request"
    return refused and {"role", "system"} <= words and REFUSES_PARAMETER.search(error.message) is not None


def advice(error: MembraneError, model: str) -> str:
    """What to say under a refusal that names a parameter: the trait that would leave it out; "" for any other."""
    if error.http_status not in (400, 422) or REFUSES_PARAMETER.search(error.message) is None:
        return ""
    words = set(WORD.findall(error.message))
    named = [trait for parameter, trait in TRAIT_OF_PARAMETER.items() if parameter in words]
    return f" (model_traits={{{model!r}: {{{named[0]}}}}} on the adapter leaves it out)" if named else ""

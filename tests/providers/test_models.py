"""models: what a model family takes, by the longest prefix of its id, and what a caller may say instead."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.providers.models import CLAUDE_MODELS, CLAUDE_NEWEST, ModelTable, ModelTraits, advice

CLAUDE = ModelTable(CLAUDE_MODELS, CLAUDE_NEWEST)

OLD = ModelTraits(output_schema=False)
FOUR = ModelTraits(interleaved_beta=True, output_schema=False)
FOUR_FIVE = ModelTraits(interleaved_beta=True)
FOUR_SIX = ModelTraits(prefill=False)
FOUR_SEVEN = ModelTraits(sampling=False, prefill=False)
NEWEST = ModelTraits(sampling=False, prefill=False, forced_tool=False)
FABLE = ModelTraits(sampling=False, prefill=False, thinking_parameter=False)
ALWAYS_THINKS = ModelTraits(sampling=False, prefill=False, thinking_parameter=False, forced_tool=False)

MODELS: dict[str, ModelTraits] = {
    "claude-2": OLD,
    "claude-instant-1": OLD,
    "claude-3-haiku-20240307": OLD,
    "claude-3-5-sonnet-20241022": OLD,
    "claude-3-7-sonnet-latest": OLD,
    "claude-opus-4": FOUR,
    "claude-opus-4-20250514": FOUR,
    "claude-opus-4@20250514": FOUR,
    "claude-opus-4-1": FOUR,
    "claude-opus-4-1-20250805": FOUR,
    "claude-sonnet-4-5-20250929": FOUR_FIVE,
    "claude-haiku-4-5": FOUR_FIVE,
    "claude-haiku-4-5@20251001": FOUR_FIVE,
    "anthropic/claude-haiku-4-5": FOUR_FIVE,
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0": FOUR_FIVE,
    "bedrock:anthropic.claude-sonnet-4-20250514-v1:0": FOUR,
    "claude-opus-4-6": FOUR_SIX,
    "claude-sonnet-4-6-20260205": FOUR_SIX,
    "claude-opus-4-7": FOUR_SEVEN,
    "claude-opus-4-8-20260601": FOUR_SEVEN,
    "claude-opus-5": FOUR_SEVEN,
    "claude-opus-5-5": NEWEST,
    "claude-sonnet-5": FOUR_SEVEN,
    "claude-sonnet-5-20260901": FOUR_SEVEN,
    "claude-sonnet-5-5": NEWEST,
    "claude-haiku-5-5": NEWEST,
    "claude-fable-5": FABLE,
    "claude-fable-5-1": ALWAYS_THINKS,
    "claude-fable-6": ALWAYS_THINKS,
    "claude-mythos-preview": ALWAYS_THINKS,
    "global.anthropic.claude-mythos-5-v1:0": FABLE,
    "claude-mythos-5-2": ALWAYS_THINKS,
    "claude-opus-6": NEWEST,
    "claude-opus-45": NEWEST,
    "gpt-5": NEWEST,
    "": NEWEST,
}


@pytest.mark.parametrize("model, traits", MODELS.items(), ids=MODELS.keys())
def test_what_a_model_takes(model: str, traits: ModelTraits) -> None:
    assert CLAUDE.traits(model) == traits


# Thinking between tool calls needs a beta on Claude 4 below 4.6, whatever stands around the name.
FAMILIES = ("opus", "sonnet", "haiku")
NEEDS_BETA = {
    **{
        form.format(f"claude-{family}-4{minor}"): minor in ("", "-1", "-5")
        for family in FAMILIES
        for minor in ("", "-1", "-5", "-6", "-7", "-8")
        for form in ("{}", "{}-20250929", "anthropic/{}", "us.anthropic.{}-20250929-v1:0", "{}@20250929")
    },
    **{f"claude-{family}-5": False for family in FAMILIES},
    "claude-3-5-sonnet-20241022": False,
    "claude-3-opus-20240229": False,
    "claude-fable-5": False,
    "gpt-4o": False,
    "": False,
}


@pytest.mark.parametrize("model, needed", NEEDS_BETA.items(), ids=NEEDS_BETA.keys())
def test_whether_thinking_between_calls_needs_a_beta(model: str, needed: bool) -> None:
    assert CLAUDE.traits(model).interleaved_beta is needed


OWN: dict[str, tuple[dict[str, Any], str, ModelTraits]] = {
    "a new family": ({"my-model": {"sampling": False}}, "my-model-7b", ModelTraits(sampling=False)),
    "it is no other family's": ({"my-model": {"sampling": False}}, "my-modeling", ModelTraits()),
    "a longer prefix wins": (
        {"m": {"stop": False}, "m-1": {"stop": True, "sampling": False}},
        "m-1-2",
        ModelTraits(sampling=False),
    ),
    "what is not named is as it was": (
        {"m": {"stop": False}, "m-1": {"sampling": False}},
        "m-1",
        ModelTraits(stop=False, sampling=False),
    ),
    "another name for the limit": (
        {"m": {"max_tokens_field": "max_completion_tokens"}},
        "m",
        ModelTraits(max_tokens_field="max_completion_tokens"),
    ),
    "an id with its vendor": ({"vendor/m": {"stop": False}}, "vendor/m:free", ModelTraits(stop=False)),
    "a bare id names it under every vendor": ({"m": {"stop": False}}, "vendor/m:free", ModelTraits(stop=False)),
}


@pytest.mark.parametrize("rows, model, traits", OWN.values(), ids=OWN.keys())
def test_a_callers_own_rows(rows: dict[str, Any], model: str, traits: ModelTraits) -> None:
    assert ModelTable({}, ModelTraits(), rows).traits(model) == traits


def test_a_callers_row_stands_over_ours_and_changes_no_other() -> None:
    table = ModelTable(CLAUDE_MODELS, CLAUDE_NEWEST, {"claude-opus-4-8": {"prefill": True}})
    assert table.traits("claude-opus-4-8-20260601") == FOUR_SEVEN._replace(prefill=True)
    assert table.traits("claude-opus-4-7") == FOUR_SEVEN
    assert CLAUDE.traits("claude-opus-4-8") == FOUR_SEVEN


MISTAKES: dict[str, tuple[Any, str]] = {
    "a list": (["m"], "model_traits: found list ['m']; expected a mapping of model ids to traits"),
    "a row that is no mapping": ({"m": "x"}, "model_traits['m']: found str 'x'; expected a mapping of model traits"),
    "a misspelt trait": ({"m": {"prefil": True}}, "model_traits['m']: no field 'prefil'; did you mean 'prefill'?"),
    "a trait of no name": (
        {"m": {"vision": True}},
        f"model_traits['m']: no field 'vision'; it takes {', '.join(ModelTraits._fields)}.",
    ),
    "a value of another type": ({"m": {"stop": 0}}, "model_traits['m'].stop: found int 0; expected bool"),
    "a name that is none": (
        {"m": {"max_tokens_field": True}},
        "model_traits['m'].max_tokens_field: found bool True; expected str",
    ),
}


@pytest.mark.parametrize("rows, words", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_row_that_cannot_be_used(rows: Any, words: str) -> None:
    with pytest.raises(MembraneError) as raised:
        ModelTable({}, ModelTraits(), rows)
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)


ADVICE: dict[str, tuple[int, str, str]] = {
    "a sampling parameter": (
        400,
        "`temperature` is deprecated for this model.",
        " (model_traits={'m': {'sampling': False}} on the adapter leaves it out)",
    ),
    "another": (422, "top_k: not supported", " (model_traits={'m': {'sampling': False}} on the adapter leaves it out)"),
    "the limit by its old name": (
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        " (model_traits={'m': {'max_tokens_field': 'max_completion_tokens'}} on the adapter leaves it out)",
    ),
    "the limit by its new name": (
        400,
        "max_completion_tokens: Extra inputs are not permitted",
        " (model_traits={'m': {'max_tokens_field': 'max_tokens'}} on the adapter leaves it out)",
    ),
    "stop sequences": (
        400,
        "Unsupported parameter: 'stop' is not supported with this model.",
        " (model_traits={'m': {'stop': False}} on the adapter leaves it out)",
    ),
    "a prefill": (
        400,
        "This model does not support assistant message prefill.",
        " (model_traits={'m': {'prefill': False}} on the adapter leaves it out)",
    ),
    "thinking": (
        400,
        "thinking.type: unexpected value",
        " (model_traits={'m': {'thinking_parameter': False}} on the adapter leaves it out)",
    ),
    "a tool that must be called": (
        400,
        "tool_choice: forcing a tool is not supported on this model",
        " (model_traits={'m': {'forced_tool': False}} on the adapter leaves it out)",
    ),
    "an answer of a schema": (
        400,
        "This response_format type is unavailable now",
        " (model_traits={'m': {'output_schema': False}} on the adapter leaves it out)",
    ),
    "a parameter without a trait": (400, "Unsupported parameter: 'seed'", ""),
    "a word that only holds one": (400, "nonstop flights are not supported", ""),
    "a value out of bounds is no refusal of the parameter": (400, "temperature: must be at most 1", ""),
    "another status": (401, "temperature is not supported", ""),
    "a fault of the server": (500, "temperature is not supported", ""),
}


@pytest.mark.parametrize("status, message, words", ADVICE.values(), ids=ADVICE.keys())
def test_what_to_do_about_a_refused_parameter(status: int, message: str, words: str) -> None:
    assert advice(MembraneError("invalid_request", message, http_status=status), "m") == words

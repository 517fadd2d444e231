"""structured_output: how a request asks for an answer of a schema, byte for byte, in each API's form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shared_data import shared_json

from membrane_lite import (
    AnthropicAdapter,
    BedrockAdapter,
    GeminiAdapter,
    Membrane,
    MembraneError,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
    OpenAIResponsesAPIAdapter,
    OpenRouterAdapter,
)
from membrane_lite.loopback import LoopbackProvider, Raw
from membrane_lite.providers.structured_output import is_strict

Json = Any
SCHEMA: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "number", "minimum": -90}},
    "required": ["city"],
    "additionalProperties": False,
}
STRICT: Json = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "degrees": {"anyOf": [{"type": "number", "minimum": -90}, {"type": "null"}]},
    },
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
CLAUDES: Json = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "degrees": {"type": "number", "description": 'Must match {"minimum":-90}'},
    },
    "required": ["city"],
    "additionalProperties": False,
}
PROMPT = (
    "Answer with one JSON object and nothing else: no words around it, no code fence. It must fit this JSON Schema:\n"
    '{"type":"object","properties":{"city":{"type":"string"},"degrees":{"type":"number","minimum":-90}},'
    '"required":["city"],"additionalProperties":false}'
)
TOOL: Json = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}
KEYS = {"access_key_id": "AKID", "secret_access_key": "secret", "region": "us-east-1"}

CLAUDE = AnthropicAdapter(api_key="any")
GPT = OpenAIAdapter(api_key="any")
LLAMA = OpenAICompatibleAdapter(base_url="http://h/v1")
PROMPTED = OpenAICompatibleAdapter(base_url="http://h/v1", structured_output="prompt")
GEMINI = GeminiAdapter(api_key="any")
RESPONSES = OpenAIResponsesAPIAdapter(api_key="any")


def fields(adapter: Any, model: str, *, names: str, options: Json = None, **request: Json) -> Json:
    """Those of the body that a structured answer is about; a field that is not there is not given."""
    config = {"model": model, "max_tokens": 4096, **request.pop("config", {})}
    asked = {"messages": [{"participant": "User", "content": "Hi"}], "config": config, **request}
    rendered = adapter.render(asked, schema=SCHEMA, **(options or {}))
    return {name: value for name, value in json.loads(rendered.body).items() if name in names.split()}


THINKING = {"thinking": {"budget_tokens": 1024}}
AS_SEEN_FIT = {"thinking": {"type": "adaptive"}}
MUST = {"type": "tool", "name": "emit", "disable_parallel_tool_use": True}
EMIT: Json = {"name": "emit", "input_schema": SCHEMA}
SENT = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}
FORMAT: Json = {"format": {"type": "json_schema", "schema": CLAUDES}}

CLAUDE_FORMS: dict[str, tuple[str, Json, Json]] = {
    "a tool that must be called": ("claude-sonnet-4-5", {}, {"tools": [EMIT], "tool_choice": MUST}),
    "its name and its description": (
        "claude-sonnet-4-5",
        {"options": {"name": "weather", "description": "Of today."}},
        {
            "tools": [{"name": "weather", "description": "Of today.", "input_schema": SCHEMA}],
            "tool_choice": {**MUST, "name": "weather"},
        },
    ),
    "behind the request's tools": (
        "claude-opus-4-8",
        {"tools": [TOOL], "prompt_caching": False},
        {"tools": [SENT, EMIT], "tool_choice": MUST},
    ),
    "a model that cannot be made to call": ("claude-opus-5-5", {}, {"output_config": FORMAT}),
    "a model that is not known": ("claude-new-7", {}, {"output_config": FORMAT}),
    "its tools are not called": (
        "claude-sonnet-5-5",
        {"tools": [TOOL], "prompt_caching": False},
        {"tools": [SENT], "tool_choice": {"type": "none"}, "output_config": FORMAT},
    ),
    "the caller's effort beside the format": (
        "claude-fable-5-1",
        {"provider_params": {"output_config": {"effort": "low"}}},
        {"output_config": {**FORMAT, "effort": "low"}},
    ),
    "thinking within a budget": (
        "claude-sonnet-4-5",
        {"config": THINKING},
        {"output_config": FORMAT, "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ),
    "thinking within a budget, before there were formats": (
        "claude-sonnet-4",
        {"config": THINKING},
        {"tools": [EMIT], "tool_choice": MUST},
    ),
    "thinking as it sees fit": (
        "claude-opus-4-6",
        {"config": AS_SEEN_FIT},
        {"tools": [EMIT], "tool_choice": MUST, "thinking": {"type": "adaptive"}},
    ),
}


@pytest.mark.parametrize("model, given, sent", CLAUDE_FORMS.values(), ids=CLAUDE_FORMS.keys())
def test_claudes_form(model: str, given: Json, sent: Json) -> None:
    assert fields(CLAUDE, model, names="tools tool_choice output_config thinking", **given) == sent


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5-5"])
def test_bedrocks_form_is_claudes(model: str) -> None:
    names = "tools tool_choice output_config"
    bedrock = BedrockAdapter(**KEYS)
    assert fields(bedrock, model, names=names) == fields(CLAUDE, model, names=names)


def test_on_bedrock_too_the_callers_effort_stands_beside_the_format() -> None:
    given = {"provider_params": {"output_config": {"effort": "low"}}}
    sent = fields(BedrockAdapter(**KEYS), "claude-opus-5-5", names="output_config", **given)
    assert sent == {"output_config": {**FORMAT, "effort": "low"}}


def test_a_schema_that_claudes_format_has_no_form_for_is_told_in_words() -> None:
    request = {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": "claude-opus-5-5"}}
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    body = json.loads(CLAUDE.render(request, schema=free).body)
    assert body["system"].endswith(':\n{"type":"object","additionalProperties":{"type":"integer"}}')
    assert {"output_config", "tool_choice", "tools"} & body.keys() == set()


KEYS_APART = {"type": "object", "properties": {"first name": {"type": "string"}}, "additionalProperties": False}


def test_a_property_that_no_tool_may_have_is_asked_for_otherwise() -> None:
    """ "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'": of a tool, so says the API."""
    asked: Json = {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": "claude-sonnet-4-5"}}
    body = json.loads(CLAUDE.render(asked, schema=KEYS_APART).body)
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": KEYS_APART}}
    assert "tools" not in body
    older = json.loads(CLAUDE.render({**asked, "config": {"model": "claude-sonnet-4"}}, schema=KEYS_APART).body)
    assert "first name" in older["system"]
    assert {"output_config", "tools"} & older.keys() == set()


UNION: Json = {"anyOf": [SCHEMA, {"type": "object", "properties": {"none": {"const": True}}, "required": ["none"]}]}
ONE_OBJECT: Json = {
    "type": "object",
    "properties": {**SCHEMA["properties"], "none": {"const": True}},
    "description": "Give the fields of one of these groups: (city) | (none)",
}


def test_a_root_of_alternatives_is_one_object_where_the_api_takes_nothing_else() -> None:
    asked: Json = {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": "gpt-5"}}
    chat = json.loads(GPT.render(asked, schema=UNION).body)["response_format"]
    assert chat == named(ONE_OBJECT, strict=False)
    responses = json.loads(RESPONSES.render(asked, schema=UNION).body)["text"]["format"]
    assert responses == {"type": "json_schema", "name": "emit", "schema": ONE_OBJECT, "strict": False}
    compatible = json.loads(LLAMA.render(asked, schema=UNION).body)["response_format"]
    assert compatible == named(UNION)


def named(schema: Json, **more: Json) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "emit", "schema": schema, **more}}


CHAT_FORMS: dict[str, tuple[Any, str, Json, Json]] = {
    "strict": (GPT, "gpt-5-mini", {}, {"response_format": named(STRICT, strict=True)}),
    "its name and its description": (
        GPT,
        "gpt-4o",
        {"options": {"name": "weather", "description": "Of today."}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "weather", "description": "Of today.", "schema": STRICT, "strict": True},
            }
        },
    ),
    "its tools are not called": (
        GPT,
        "gpt-5",
        {"tools": [TOOL]},
        {
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "look", "description": "Look.", "parameters": TOOL["input_schema"]},
                }
            ],
            "tool_choice": "none",
            "response_format": named(STRICT, strict=True),
        },
    ),
    "a model from before schemas": (GPT, "gpt-4-turbo", {}, {}),
    "through openrouter": (
        OpenRouterAdapter(api_key="any"),
        "anthropic/claude-haiku-4.5",
        {},
        {"response_format": named(STRICT, strict=True)},
    ),
    "a compatible server is given the schema as it is": (LLAMA, "llama3", {}, {"response_format": named(SCHEMA)}),
    "the caller's own": (
        LLAMA,
        "llama3",
        {"provider_params": {"response_format": {"type": "json_object"}}},
        {"response_format": {"type": "json_object"}},
    ),
    "a server that takes none": (PROMPTED, "llama3", {}, {}),
    "a model that takes none": (
        OpenAICompatibleAdapter(base_url="http://h/v1", model_traits={"llama3": {"output_schema": False}}),
        "llama3",
        {},
        {},
    ),
}


@pytest.mark.parametrize("adapter, model, given, sent", CHAT_FORMS.values(), ids=CHAT_FORMS.keys())
def test_the_form_of_chat_completions(adapter: Any, model: str, given: Json, sent: Json) -> None:
    assert fields(adapter, model, names="tools tool_choice response_format", **given) == sent


PROMPTS: dict[str, tuple[Json, Json]] = {
    "alone": ({}, PROMPT),
    "behind the system text": ({"system": "Be brief."}, f"Be brief.\n{PROMPT}"),
    "behind a description": ({"options": {"description": "Of today."}}, f"Of today.\n{PROMPT}"),
}


@pytest.mark.parametrize("given, text", PROMPTS.values(), ids=PROMPTS.keys())
def test_the_schema_in_words(given: Json, text: str) -> None:
    sent = fields(PROMPTED, "llama3", names="messages", **given)
    assert sent["messages"][0] == {"role": "system", "content": text}


@pytest.mark.parametrize("structured_output", ["strict", "tool", None])
def test_a_server_has_two_ways(structured_output: Any) -> None:
    with pytest.raises(MembraneError) as caught:
        OpenAICompatibleAdapter(base_url="http://h/v1", structured_output=structured_output)
    assert caught.value.message == (
        f"structured_output: found {structured_output!r}; expected 'json_schema' or 'prompt'"
    )


FLAT: Json = {"type": "json_schema", "name": "emit", "schema": STRICT, "strict": True}
RESPONSES_FORMS: dict[str, tuple[str, Json, Json]] = {
    "strict": ("gpt-5.1", {}, {"text": {"format": FLAT}}),
    "the caller's verbosity beside the format": (
        "gpt-5.1",
        {"provider_params": {"text": {"verbosity": "low"}}},
        {"text": {"format": FLAT, "verbosity": "low"}},
    ),
    "its tools are not called": (
        "gpt-5.1",
        {"tools": [TOOL]},
        {
            "tools": [{"type": "function", "name": "look", "description": "Look.", "parameters": TOOL["input_schema"]}],
            "tool_choice": "none",
            "text": {"format": FLAT},
        },
    ),
    "a model from before schemas": ("gpt-4", {"system": "Be brief."}, {"instructions": f"Be brief.\n{PROMPT}"}),
}


@pytest.mark.parametrize("model, given, sent", RESPONSES_FORMS.values(), ids=RESPONSES_FORMS.keys())
def test_the_form_of_responses(model: str, given: Json, sent: Json) -> None:
    assert fields(RESPONSES, model, names="text tools tool_choice instructions", **given) == sent


HELD: Json = {"maxOutputTokens": 4096, "responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
GEMINI_FORMS: dict[str, tuple[str, Json, Json]] = {
    "a type and a schema": ("gemini-2.5-flash", {}, {"generationConfig": HELD}),
    "the caller's own fields beside them": (
        "gemini-3-pro",
        {"provider_params": {"generationConfig": {"seed": 1}}},
        {"generationConfig": {**HELD, "seed": 1}},
    ),
    "its tools are not called": (
        "gemini-3-pro",
        {"tools": [TOOL]},
        {
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": "look", "description": "Look.", "parametersJsonSchema": TOOL["input_schema"]}
                    ]
                }
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
            "generationConfig": HELD,
        },
    ),
}


@pytest.mark.parametrize("model, given, sent", GEMINI_FORMS.values(), ids=GEMINI_FORMS.keys())
def test_geminis_form(model: str, given: Json, sent: Json) -> None:
    assert fields(GEMINI, model, names="tools toolConfig generationConfig", **given) == sent


def test_a_gemini_that_cannot_be_held_to_a_schema_is_told_it_in_words() -> None:
    told = GeminiAdapter(api_key="any", model_traits={"gemma": {"output_schema": False}})
    sent = fields(told, "gemma-3", names="systemInstruction generationConfig")
    assert sent == {
        "systemInstruction": {"parts": [{"text": PROMPT}]},
        "generationConfig": {"maxOutputTokens": 4096},
    }


@pytest.mark.parametrize("model", ["gemini-2.5-flash-image", "gemini-2.5-flash-preview-tts"])
def test_a_gemini_that_draws_or_speaks_has_no_json_mode(model: str) -> None:
    sent = fields(GEMINI, model, names="systemInstruction generationConfig")
    assert sent["systemInstruction"] == {"parts": [{"text": PROMPT}]}
    assert {"responseMimeType", "responseJsonSchema"} & sent["generationConfig"].keys() == set()


STRICT_BODIES: dict[str, tuple[Json, bool]] = {
    "chat": ({"response_format": {"json_schema": {"strict": True}}}, True),
    "responses": ({"text": {"format": {"strict": True}}}, True),
    "not strict": ({"response_format": {"json_schema": {"strict": False}}}, False),
    "no schema": ({"response_format": "text", "text": None}, False),
    "no body": (None, False),
}


@pytest.mark.parametrize("body, strict", STRICT_BODIES.values(), ids=STRICT_BODIES.keys())
def test_whether_a_body_asked_for_the_strict_form(body: Json, strict: bool) -> None:
    assert is_strict(body) is strict


# As others have sent it, and were answered


def test_claudes_format_is_what_others_have_sent() -> None:
    exchange = shared_json("recorded/anthropic/structured-output-stream-d1298.json")
    sent = exchange["request"]["body"]["output_config"]
    assert (
        sent["format"]
        == json.loads(
            CLAUDE.render(
                {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": "claude-opus-5-5"}},
                schema=sent["format"]["schema"],
            ).body
        )["output_config"]["format"]
    )


def test_a_recorded_answer_of_responses_is_read() -> None:
    exchange = shared_json("recorded/openai_responses/structured-stream-ef448.json")
    given = exchange["request"]["body"]["text"]["format"]
    answered = Raw(200, exchange["response"]["headers"], exchange["response"]["body_text"])
    with LoopbackProvider([answered]) as provider, provider.transport() as transport:
        adapter = OpenAIResponsesAPIAdapter(
            mode="subscription",  # always streamed, as the recorded answer is
            credentials=lambda **how: {"token": "any"},
            base_url=provider.url + "/v1",
            transport=transport,
        )
        found = Membrane(adapter).complete_object(
            {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": "gpt-5.4"}},
            schema=given["schema"],
            name=given["name"],
        )
        assert provider.requests[0].json["text"]["format"] == given
    assert found == json.loads(exchange["expected"]["text"])

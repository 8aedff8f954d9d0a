"""Tool calls and structured answers of the sandbox fit the schema that the request declared, in every dialect."""

import json
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from raw_client import Response, ask

from hedgerow.testing.process import SandboxProcess

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 3},
        "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
        "days": {"type": "array", "items": {"$ref": "#/$defs/Day"}, "minItems": 2},
        "note": {"type": "string"},
    },
    "required": ["city", "unit", "days"],
    "$defs": {"Day": {"type": "object", "properties": {"of": {"type": "integer", "minimum": 1}}, "required": ["of"]}},
}
FITS = {"city": "city", "unit": "celsius", "days": [{"of": 1}, {"of": 1}]}
OTHER: dict[str, Any] = {"type": "object", "properties": {"id": {"const": 7}}, "required": ["id"]}
IMPOSSIBLE: dict[str, Any] = {"type": "object", "properties": {"a": {"pattern": "^ünlikely$"}}, "required": ["a"]}
USER = [{"role": "user", "content": "hi"}]
CHAT = {"model": "m", "messages": USER}
SAID = "said"


@dataclass(frozen=True)
class Api:
    """How one API declares tools, insists on one, and declares the form of its answer."""

    name: str

    def asked(self, schemas: dict[str, dict[str, Any]], forced: str | None = None) -> dict[str, Any]:
        """The fields of a request with these tools; `forced`: a tool's name, or "any"."""
        chosen: dict[str, Any] = {}
        if self.name == "chat":
            tools: list[Any] = [
                {"type": "function", "function": {"name": name, "parameters": schema}}
                for name, schema in schemas.items()
            ]
            if forced:
                named: Any = {"type": "function", "function": {"name": forced}}
                chosen = {"tool_choice": "required" if forced == "any" else named}
            return {"path": "/v1/chat/completions", **CHAT, "tools": tools, **chosen}
        if self.name == "responses":
            tools = [{"type": "function", "name": name, "parameters": schema} for name, schema in schemas.items()]
            if forced:
                chosen = {"tool_choice": "required" if forced == "any" else {"type": "function", "name": forced}}
            return {"path": "/v1/responses", "model": "m", "input": "hi", "tools": tools, **chosen}
        if self.name == "anthropic":
            tools = [{"name": name, "input_schema": schema} for name, schema in schemas.items()]
            if forced:
                chosen = {"tool_choice": {"type": "any"} if forced == "any" else {"type": "tool", "name": forced}}
            return {"path": "/v1/messages", **CHAT, "max_tokens": 99, "tools": tools, **chosen}
        declared = [{"name": name, "parametersJsonSchema": schema} for name, schema in schemas.items()]
        if forced:
            names = {} if forced == "any" else {"allowedFunctionNames": [forced]}
            chosen = {"toolConfig": {"functionCallingConfig": {"mode": "ANY", **names}}}
        contents = [{"role": "user", "parts": [{"text": "hi"}]}]
        path = "/v1beta/models/m:generateContent"
        return {"path": path, "contents": contents, "tools": [{"functionDeclarations": declared}], **chosen}

    def formed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The fields of a request whose answer is to fit a schema."""
        asked = self.asked({})
        asked.pop("tools")
        if self.name == "chat":
            form = {"type": "json_schema", "json_schema": {"name": "f", "schema": schema}}
            return asked | {"response_format": form}
        if self.name == "responses":
            return asked | {"text": {"format": {"type": "json_schema", "name": "f", "schema": schema}}}
        if self.name == "anthropic":
            return asked | {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        settings = {"responseMimeType": "application/json", "responseJsonSchema": schema}
        return asked | {"generationConfig": settings}

    def calls(self, answer: Response) -> list[tuple[str, Any]]:
        """Each tool that is called, and its arguments."""
        body = answer.json
        if self.name == "chat":
            made = [each["function"] for each in body["choices"][0]["message"].get("tool_calls", [])]
            return [(each["name"], json.loads(each["arguments"])) for each in made]
        if self.name == "responses":
            made = [each for each in body["output"] if each["type"] == "function_call"]
            return [(each["name"], json.loads(each["arguments"])) for each in made]
        if self.name == "anthropic":
            return [(each["name"], each["input"]) for each in body["content"] if each["type"] == "tool_use"]
        parts = body["candidates"][0]["content"]["parts"]
        return [
            (part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part
        ]

    def text(self, answer: Response) -> str:
        """The text of the answer."""
        body = answer.json
        if self.name == "chat":
            return body["choices"][0]["message"]["content"]
        if self.name == "responses":
            return body["output"][0]["content"][0]["text"]
        if self.name == "anthropic":
            return body["content"][0]["text"]
        return body["candidates"][0]["content"]["parts"][0]["text"]


each_api = pytest.mark.parametrize(
    "api", [Api("chat"), Api("responses"), Api("anthropic"), Api("gemini")], ids=lambda api: api.name
)


@each_api
def test_arguments_fit_the_tools_own_schema(hedgerow_sandbox: SandboxProcess, api: Api) -> None:
    asked = api.asked({"weather": SCHEMA, "other": OTHER})
    calls = api.calls(ask(hedgerow_sandbox, script={"tool_calls": 3}, **asked))
    assert calls == [("weather", FITS), ("other", {"id": 7}), ("weather", FITS)]
    jsonschema.validate(FITS, SCHEMA)


@each_api
def test_a_tool_that_the_request_names_is_called_without_any_script(hedgerow_sandbox: SandboxProcess, api: Api) -> None:
    named = api.asked({"weather": SCHEMA, "other": OTHER}, forced="other")
    assert api.calls(ask(hedgerow_sandbox, **named)) == [("other", {"id": 7})]
    one_of_them = api.asked({"weather": SCHEMA, "other": OTHER}, forced="any")
    assert api.calls(ask(hedgerow_sandbox, **one_of_them)) == [("weather", FITS)]
    assert api.calls(ask(hedgerow_sandbox, **api.asked({"weather": SCHEMA}))) == []


@each_api
def test_a_scripts_text_goes_before_a_tool_that_must_be_called(hedgerow_sandbox: SandboxProcess, api: Api) -> None:
    answer = ask(hedgerow_sandbox, script={"text": SAID}, **api.asked({"weather": SCHEMA}, forced="any"))
    assert (api.calls(answer), api.text(answer)) == ([], SAID)


@each_api
def test_a_script_gives_the_arguments(hedgerow_sandbox: SandboxProcess, api: Api) -> None:
    asked = api.asked({"weather": SCHEMA, "other": OTHER})
    one = {"arguments": {"city": "Oslo"}}
    assert api.calls(ask(hedgerow_sandbox, script=one, **asked)) == [("weather", {"city": "Oslo"})]
    two = {"arguments": [{"city": "Oslo"}, {"id": 1}]}
    assert api.calls(ask(hedgerow_sandbox, script=two, **asked)) == [
        ("weather", {"city": "Oslo"}),
        ("other", {"id": 1}),
    ]
    three = {"arguments": [{"city": "Oslo"}], "tool_calls": 2}
    assert [made for _, made in api.calls(ask(hedgerow_sandbox, script=three, **asked))] == [{"city": "Oslo"}] * 2


@each_api
def test_a_choice_of_an_undeclared_tool_is_refused(hedgerow_sandbox: SandboxProcess, api: Api) -> None:
    answer = ask(hedgerow_sandbox, **api.asked({"weather": SCHEMA}, forced="nobody"))
    assert (answer.status, "nobody" in answer.text) == (400, True)


@each_api
def test_what_cannot_be_made_is_refused_until_it_is_scripted(hedgerow_sandbox: SandboxProcess, api: Api) -> None:
    asked = api.asked({"odd": IMPOSSIBLE}, forced="odd")
    answer = ask(hedgerow_sandbox, **asked)
    assert (answer.status, "script it" in answer.text) == (400, True)
    assert api.calls(ask(hedgerow_sandbox, script={"arguments": {"a": "b"}}, **asked)) == [("odd", {"a": "b"})]


@each_api
def test_an_answer_fits_the_form_that_the_request_declared(hedgerow_sandbox: SandboxProcess, api: Api) -> None:
    answer = ask(hedgerow_sandbox, **api.formed(SCHEMA))
    assert json.loads(api.text(answer)) == FITS
    assert api.text(ask(hedgerow_sandbox, script={"text": SAID}, **api.formed(SCHEMA))) == SAID


def test_only_the_allowed_tools_are_called(hedgerow_sandbox: SandboxProcess) -> None:
    for name, allowed in (
        (
            "chat",
            {"allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "other"}}]}},
        ),
        ("responses", {"mode": "required", "tools": [{"type": "function", "name": "other"}]}),
    ):
        api = Api(name)
        asked = api.asked({"weather": SCHEMA, "other": OTHER}) | {"tool_choice": {"type": "allowed_tools", **allowed}}
        assert api.calls(ask(hedgerow_sandbox, **asked)) == [("other", {"id": 7})]


def test_a_streamed_call_has_the_same_arguments(hedgerow_sandbox: SandboxProcess) -> None:
    api = Api("chat")
    answer = ask(hedgerow_sandbox, script={"tool_calls": 1}, stream=True, **api.asked({"weather": SCHEMA}))
    pieces = [delta[0]["function"]["arguments"] for delta in answer.said("tool_calls")]
    assert len(pieces) > 2
    assert json.loads("".join(pieces)) == FITS


def test_a_json_object_is_one(hedgerow_sandbox: SandboxProcess) -> None:
    answer = ask(hedgerow_sandbox, response_format={"type": "json_object"})
    assert json.loads(Api("chat").text(answer)) == {}


@pytest.mark.parametrize("given", [[], "text", [1], 7])
def test_arguments_that_are_no_objects_are_a_mistake(hedgerow_sandbox: SandboxProcess, given: Any) -> None:
    answer = ask(hedgerow_sandbox, script={"arguments": given})
    assert (answer.status, "arguments" in answer.text) == (400, True)


def test_gemini_takes_a_schema_under_either_name(hedgerow_sandbox: SandboxProcess) -> None:
    api = Api("gemini")
    asked = api.asked({}) | {"tools": [{"functionDeclarations": [{"name": "f", "parameters_json_schema": OTHER}]}]}
    assert api.calls(ask(hedgerow_sandbox, script={"tool_calls": 1}, **asked)) == [("f", {"id": 7})]
    asked["tools"] = [{"function_declarations": [{"name": "f", "parameters": {}}, {"name": "g", "parameters": OTHER}]}]
    asked["tool_config"] = {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["g"]}}
    assert api.calls(ask(hedgerow_sandbox, **asked)) == [("g", {"id": 7})]
    asked = api.asked({})
    form = {"generationConfig": {"response_mime_type": "application/json", "response_schema": OTHER}}
    assert json.loads(api.text(ask(hedgerow_sandbox, **(asked | form)))) == {"id": 7}

"""Gemini's generateContent, streamGenerateContent, countTokens and embeddings as Google writes them.

A stream is events without names or end marker; every chunk reports the usage so far. Google sends no pings: a chunk
without candidates stands for one.
"""

import re
from collections.abc import Sequence
from typing import cast

import orjson

from hedgerow.sandbox.content import Answer, Call, Piece, ReportedUsage
from hedgerow.sandbox.http1 import BadRequest
from hedgerow.sandbox.tools import Choice, Tool, callable_tools, objects, table, tool
from hedgerow.sandbox.wire_format import Frame, estimate_tokens, json_object

__all__ = ["GeminiContent", "GeminiWhole"]

CONTENT = re.compile(r".*/models/([^/:]+):(generateContent|streamGenerateContent)")
WHOLE = re.compile(r".*/models/([^/:]+):(countTokens|embedContent|batchEmbedContents)")
MAX_CANDIDATES = 8
DIMENSIONS = 16
STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
FINISH_REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


class _Gemini:
    """What all of Gemini's calls have in common."""

    def error_frame(self, error: dict[str, object]) -> Frame:
        return Frame(data=orjson.dumps({"error": error}))

    def error_body(self, status: int, message: str, error: dict[str, object] | None) -> bytes:
        name = STATUS_NAMES.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
        return orjson.dumps({"error": error or {"code": status, "message": message, "status": name}})


class GeminiContent(_Gemini):
    """The wire format of generated content."""

    def handles(self, path: str) -> bool:
        return CONTENT.fullmatch(path) is not None

    def read(self, path: str, body: bytes) -> Call:
        asked = json_object(body)
        found = CONTENT.fullmatch(path)
        if found is None or not asked.get("contents"):
            raise BadRequest("* GenerateContentRequest.contents: contents is not specified")
        settings = table(_field(asked, "generationConfig"))
        choice = _choice(table(_field(table(_field(asked, "toolConfig")), "functionCallingConfig")))
        limit, tier = settings.get("maxOutputTokens"), asked.get("serviceTier")
        return Call(
            model=found[1],
            input_tokens=max(
                1, estimate_tokens([asked["contents"], asked.get("systemInstruction"), asked.get("tools")])
            ),
            stream=found[2] == "streamGenerateContent",
            n=_candidates(settings.get("candidateCount")),
            usage_in_stream=True,
            max_tokens=limit if isinstance(limit, int) and limit > 0 else None,
            service_tier=tier if isinstance(tier, str) and tier not in ("unspecified", "standard") else None,
            tools=callable_tools(_declared(asked.get("tools")), choice),
            tool_forced=choice.forced,
            form=_form(settings),
            body=asked,
        )

    def opening(self, answer: Answer) -> Sequence[Frame]:
        return _frames(answer, [{"text": ""}], 0)

    def token(self, answer: Answer, number: int) -> Sequence[Frame]:
        parts = _parts(answer, answer.pieces[number : number + 1])
        return _frames(answer, parts, number + 1) if parts else ()

    def closing(self, answer: Answer) -> Sequence[Frame]:
        if answer.finish_reason is None:
            return ()
        return _frames(answer, [{"text": ""}], len(answer.pieces), _finish_reason(answer.finish_reason))

    def marker(self) -> Sequence[Frame]:
        return ()

    def ping(self) -> Frame:
        return Frame(data=b'{"candidates": []}')

    def whole(self, answer: Answer) -> bytes:
        parts = _parts(answer, answer.pieces)
        reason = {} if answer.finish_reason is None else {"finishReason": _finish_reason(answer.finish_reason)}
        candidates: list[dict[str, object]] = [
            {"content": {"parts": parts, "role": "model"}, **reason, "index": number} for number in range(answer.n)
        ]
        return orjson.dumps(_envelope(answer, candidates, len(answer.pieces)))


class GeminiWhole(_Gemini):
    """The wire format of embeddings and token counts, which are never streamed and generate nothing."""

    def handles(self, path: str) -> bool:
        return WHOLE.fullmatch(path) is not None

    def read(self, path: str, body: bytes) -> Call:
        found = WHOLE.fullmatch(path)
        assert found is not None
        asked = json_object(body) | {"method": found[2]}
        return Call(model=found[1], input_tokens=max(1, estimate_tokens(asked)), generates=False, body=asked)

    def opening(self, answer: Answer) -> Sequence[Frame]:  # noqa: ARG002
        return ()

    def token(self, answer: Answer, number: int) -> Sequence[Frame]:  # noqa: ARG002
        return ()

    def closing(self, answer: Answer) -> Sequence[Frame]:  # noqa: ARG002
        return ()

    def marker(self) -> Sequence[Frame]:
        return ()

    def ping(self) -> Frame:
        return Frame(comment="ping")

    def whole(self, answer: Answer) -> bytes:
        method, tokens = answer.call.body["method"], answer.call.input_tokens
        if method == "countTokens":
            details = [{"modality": "TEXT", "tokenCount": tokens}]
            return orjson.dumps({"totalTokens": tokens, "promptTokensDetails": details})
        if method == "embedContent":
            return orjson.dumps({"embedding": {"values": _vector(answer.call.body)}})
        requests = answer.call.body.get("requests")
        asked = cast(list[object], requests) if isinstance(requests, list) else []
        return orjson.dumps({"embeddings": [{"values": _vector(each)} for each in asked]})


def _candidates(count: object) -> int:
    if count is None:
        return 1
    if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MAX_CANDIDATES:
        return count
    raise BadRequest(
        f"* GenerateContentRequest.generation_config.candidate_count: {count!r} is not in 1..{MAX_CANDIDATES}"
    )


def _field(asked: dict[str, object], name: str) -> object:
    """A field under its name, or as the API takes it, too: `tool_config` for `toolConfig`."""
    return asked.get(name, asked.get(re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)))


def _declared(tools: object) -> list[Tool | None]:
    return [
        tool(each, "parameters", "parametersJsonSchema", "parameters_json_schema")
        for group in objects(tools)
        for each in objects(_field(group, "functionDeclarations"))
    ]


def _choice(asked: dict[str, object]) -> Choice:
    names = _field(asked, "allowedFunctionNames")
    given = cast(list[object], names) if isinstance(names, list) else []
    return Choice(
        forced=str(asked.get("mode")).upper() == "ANY", names=tuple(name for name in given if isinstance(name, str))
    )


def _form(settings: dict[str, object]) -> dict[str, object] | None:
    if _field(settings, "responseMimeType") != "application/json":
        return None
    forms = (table(_field(settings, name)) for name in ("responseJsonSchema", "responseSchema"))
    return next((form for form in forms if form), {"type": "object"})


def _frames(answer: Answer, parts: list[dict[str, object]], tokens: int, reason: str | None = None) -> list[Frame]:
    """One chunk for each candidate; `tokens`: how many pieces of each have been sent, with these."""
    finished: dict[str, object] = {} if reason is None else {"finishReason": reason}
    return [
        Frame(
            data=orjson.dumps(
                _envelope(answer, [{"content": {"parts": parts, "role": "model"}, **finished, "index": number}], tokens)
            )
        )
        for number in range(answer.n)
    ]


def _envelope(answer: Answer, candidates: list[dict[str, object]], tokens: int) -> dict[str, object]:
    body: dict[str, object] = {"candidates": candidates}
    if answer.usage is not None:
        body["usageMetadata"] = _usage(answer, answer.usage, tokens)
    return body | {"modelVersion": answer.call.model, "responseId": answer.id.rpartition("-")[2]}


def _usage(answer: Answer, usage: ReportedUsage, tokens: int) -> dict[str, object]:
    """The usage so far; of the whole answer, as it is reported."""
    output_tokens, thoughts = usage.output_tokens, usage.reasoning_tokens
    if tokens < len(answer.pieces):
        output_tokens = tokens * answer.n
        thoughts = sum(piece.kind == "reasoning" for piece in answer.pieces[:tokens]) * answer.n
    tier = "standard" if answer.service_tier == "default" else answer.service_tier
    counted = {
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "candidatesTokenCount": max(0, output_tokens - thoughts),
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": usage.input_tokens + output_tokens,
    }
    # As the API does: what is zero is left out.
    reported: dict[str, object] = {name: value for name, value in counted.items() if value}
    return reported | {"serviceTier": tier}


def _parts(answer: Answer, pieces: Sequence[Piece]) -> list[dict[str, object]]:
    """The parts that these pieces make. A function call comes whole, with the last piece of its arguments."""
    parts: list[dict[str, object]] = []
    for piece in pieces:
        if piece.kind == "tool":
            if piece is _last_of(answer, piece.tool):
                parts.append({"functionCall": _call(answer, piece.tool)})
            continue
        thought = {"thought": True} if piece.kind == "reasoning" else {}
        last = parts[-1] if parts else {}
        if "text" in last and last.get("thought", False) == bool(thought):
            last["text"] = f"{last['text']}{piece.text}"
        else:
            parts.append({"text": piece.text, **thought})
    return parts


def _last_of(answer: Answer, tool: int) -> Piece:
    return next(piece for piece in reversed(answer.pieces) if piece.kind == "tool" and piece.tool == tool)


def _call(answer: Answer, tool: int) -> dict[str, object]:
    arguments = answer.joined("tool", tool=tool)
    try:
        parsed = cast(object, orjson.loads(arguments))
    except orjson.JSONDecodeError:
        parsed = None
    # A scripted text that is no object still has to be said.
    args: object = cast(object, parsed) if isinstance(parsed, dict) else {"text": arguments}
    return {"name": answer.tool_name(tool), "args": args}


def _finish_reason(reason: str) -> str:
    return FINISH_REASONS.get(reason, reason.upper())


def _vector(content: object) -> list[float]:
    """The same content has the same vector."""
    seed = sum(orjson.dumps(content))
    return [((seed * (place + 1)) % 1009) / 1009 for place in range(DIMENSIONS)]

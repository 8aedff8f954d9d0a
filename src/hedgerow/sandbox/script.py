"""What a request's `x-sandbox-script` header asks of its answer: one Script for each arrival of the case, the last repeats.

A script means the same for every dialect. Times are provider seconds.
"""

import re
from dataclasses import dataclass
from typing import Literal, cast

import orjson

from hedgerow.errors import SettingError
from hedgerow.sandbox.checked import Fields

__all__ = ["ErrorFrame", "Pings", "Script", "Stall", "parse_script"]

WHERE = "x-sandbox-script"
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
LINE_ENDS = ("\n", "\r\n", "\r")
USAGE_KEYS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pings:
    """Keep-alive comments before the first token: one each `every_s`, at most `count`."""

    every_s: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """`wait_s` more seconds before the token that follows the first `after` tokens (or before the end)."""

    after: int
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFrame:
    """An in-band error after `after` tokens; `error` is the dialect's error object as it is sent."""

    after: int
    error: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One arrival's fate. None = from the profile or request, or "does not happen".

    `tokens` counts the visible tokens of one choice; `reasoning_tokens` come before them. `after` and `cut_after` count
    both together. `reset` and `half_open` say how the cut happens; without `cut_after` it happens before the first token.
    `usage` False: never reported; otherwise as the API does, with the values given in place of the counted ones.
    An `error_frame` with a status ≠ 200 is the body of that answer. `await_arrivals`: all times count from the moment when
    so many requests of the case have arrived; None or 1 = from its own arrival. So a test of a race need not guess how long
    a backup takes to come. `tool_calls` None: one where the request insists on it, or as many as there are `arguments`: the
    JSON objects of the first calls, the last of which repeats.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    before_headers_s: float = 0.0
    first_token_s: float | None = None
    token_s: float | None = None
    tokens: int | None = None
    text: str | None = None
    role_chunk: bool = True
    pings: Pings | None = None
    stall: Stall | None = None
    error_frame: ErrorFrame | None = None
    cut_after: int | None = None
    half_open: bool = False
    reset: bool = False
    chunk_bytes: int | None = None
    line_end: str = "\n"
    final_newline: bool = True
    ignore_disconnect: bool = False
    raw_body: str | None = None
    tool_calls: int | None = None
    arguments: tuple[str, ...] = ()
    n: int | None = None
    end: Literal["done", "eof"] = "done"
    finish_reason: str | None = None
    usage: bool = True
    usage_tokens: tuple[tuple[str, int], ...] = ()
    service_tier: str | None = None
    refusal: str | None = None
    reasoning_tokens: int = 0
    await_arrivals: int | None = None


def parse_script(text: str) -> tuple[Script, ...]:
    """The scripts of a header value: a JSON list with at least one object. Raises SettingError naming the key."""
    try:
        parsed = cast(object, orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise SettingError(WHERE, text, "a JSON list of objects", fix=str(error)) from None
    if not isinstance(parsed, list) or not parsed:
        raise SettingError(WHERE, text, "a JSON list with one object for each arrival of the case")
    arrivals = cast(list[object], parsed)
    return tuple(_script(Fields(value, where=f"{WHERE}[{number}]")) for number, value in enumerate(arrivals))


def _script(fields: Fields) -> Script:
    usage, usage_tokens = _usage(fields)
    half_open, reset = fields.flag("half_open", False), fields.flag("reset", False)
    script = Script(
        status=fields.whole("status", 200, low=200, high=599),
        headers=_headers(fields),
        before_headers_s=fields.number("before_headers_s", 0.0),
        first_token_s=fields.number("first_token_s", None),
        token_s=fields.number("token_s", None),
        tokens=fields.whole("tokens", None, high=1_000_000),
        text=fields.text("text", None),
        role_chunk=fields.flag("role_chunk", True),
        pings=_pings(fields.table("pings")),
        stall=_stall(fields.table("stall")),
        error_frame=_error_frame(fields.table("error_frame")),
        cut_after=fields.whole("cut_after", 0 if half_open or reset else None),
        half_open=half_open,
        reset=reset,
        chunk_bytes=fields.whole("chunk_bytes", None, low=1),
        line_end=fields.text("line_end", "\n", options=LINE_ENDS),
        final_newline=fields.flag("final_newline", True),
        ignore_disconnect=fields.flag("ignore_disconnect", False),
        raw_body=fields.text("raw_body", None),
        tool_calls=fields.whole("tool_calls", None, high=100),
        arguments=_arguments(fields),
        n=fields.whole("n", None, low=1, high=128),
        end="eof" if fields.text("end", "done", options=("done", "eof")) == "eof" else "done",
        finish_reason=fields.text("finish_reason", None),
        usage=usage,
        usage_tokens=usage_tokens,
        service_tier=fields.text("service_tier", None),
        refusal=fields.text("refusal", None),
        reasoning_tokens=fields.whole("reasoning_tokens", 0, high=1_000_000),
        await_arrivals=fields.whole("await_arrivals", None, low=1, high=1_000),
    )
    fields.close()
    return script


def _headers(fields: Fields) -> tuple[tuple[str, str], ...]:
    headers: list[tuple[str, str]] = []
    for name, value in (fields.mapping("headers") or {}).items():
        text = str(value)
        if not HEADER_NAME.fullmatch(name) or not text.isprintable() or not text.isascii():
            raise fields.error("headers", {name: value}, "header names and values in printable ASCII")
        headers.append((name.lower(), text))
    retry_after = fields.raw("retry_after")
    if isinstance(retry_after, int | float | str) and str(retry_after).isascii() and str(retry_after).isprintable():
        headers.append(("retry-after", f"{retry_after:g}" if isinstance(retry_after, float) else str(retry_after)))
    elif retry_after is not None:
        raise fields.error("retry_after", retry_after, "seconds, or a date as text")
    return tuple(headers)


def _arguments(fields: Fields) -> tuple[str, ...]:
    """One object for every call, or a list with one for each."""
    value = fields.raw("arguments")
    if value is None:
        return ()
    given = cast(list[object], value) if isinstance(value, list) else [value]
    if not given or not all(isinstance(each, dict) for each in given):
        raise fields.error("arguments", cast(object, value), "an object, or a list of objects")
    return tuple(orjson.dumps(each).decode() for each in given)


def _pings(fields: Fields | None) -> Pings | None:
    if fields is None:
        return None
    pings = Pings(every_s=fields.number("every_s", 1.0, low=0.001), count=fields.whole("count", 1, high=10_000))
    fields.close()
    return pings


def _stall(fields: Fields | None) -> Stall | None:
    if fields is None:
        return None
    stall = Stall(after=fields.whole("after", 0), wait_s=fields.number("s", 0.0))
    fields.close()
    return stall


def _error_frame(fields: Fields | None) -> ErrorFrame | None:
    if fields is None:
        return None
    frame = ErrorFrame(after=fields.whole("after", 0), error=fields.mapping("error") or {})
    fields.close()
    return frame


def _usage(fields: Fields) -> tuple[bool, tuple[tuple[str, int], ...]]:
    value = fields.raw("usage")
    if value is None or isinstance(value, bool):
        return value is not False, ()
    table = fields.table("usage")
    if table is None:
        return True, ()
    found: list[tuple[str, int]] = []
    for key in USAGE_KEYS:
        # "cached" is short for "cached_tokens", and so on.
        tokens = table.whole(key, table.whole(key.removesuffix("_tokens"), None))
        if tokens is not None:
            found.append((key, tokens))
    table.close()
    return True, tuple(found)

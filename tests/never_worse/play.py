"""Plays a scenario to a client, and says what its caller got."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
from google import genai
from google.genai import errors as genai_errors
from tests.gateway.running import Running
from tests.never_worse.clock import ScriptClock
from tests.never_worse.provider import PATIENCE_S, Play, Provider
from tests.never_worse.scenario import Scenario

import hedgerow

__all__ = ["BARE", "SILENT", "WAYS", "Outcome", "Stage", "ways_for"]

BARE = "bare"
WAYS = ("async", "sync", "transport", "classic", "gateway")
POLICIES: dict[str, dict[str, Any]] = {
    "cold": {"budget": "off"},  # the plays of one gateway share a hedger: none may spend what another needs
    "warm": {"prior": {"first_token_s": 0.5, "token_s": 0.05, "lag_s": 0.5}, "budget": "off"},
    "observe": {"mode": "observe", "prior": {"first_token_s": 0.5, "token_s": 0.05, "lag_s": 0.5}},
    "race": {"trigger": "first_token", "delay": 1.0, "max_backups": 1, "budget": "off"},
    "upstream_stream": {"upstream_stream": True, "stall_s": 10.0, "budget": "off"},
}
ASKED = [{"role": "user", "content": "hello"}]
CONTEXT = httpx2.create_ssl_context(verify=False)  # shared: making one takes 20 ms
READ_S = 1.0  # the SDK's own read time-out where a provider falls silent for good
SILENT = ("silence", "silent_head")
SLOW_S = 0.002
KEPT_HEADERS = ("retry-after", "content-type")


@dataclass
class Outcome:
    """What a caller got. content: the answer as plain data, or the events of a stream; error: the class of what was raised,
    in the middle of a stream as well; status: that the error carries; seen_by: see Play."""

    content: Any = None
    error: str | None = None
    message: str = ""
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    attempts: int = 0
    seen_by: dict[int, bool] = field(default_factory=dict)
    left_open: int = 0

    @property
    def whole(self) -> bool:
        return self.error is None


def ways_for(scenario: Scenario) -> list[str]:
    """The ways of ours that this scenario can take: classic httpx is for openai's SDK only."""
    left_out = () if scenario.dialect in ("chat", "responses") else ("classic",)
    if scenario.dialect == "gemini":
        left_out += ("transport",)
    return [way for way in WAYS if way not in left_out]


class Stage:
    """The provider, the gateways and the HTTP clients, for any number of plays. For one event loop. patience_s: how long a
    piece may take to be seen that the bare client has seen."""

    def __init__(self, folder: Path) -> None:
        self.provider, self.patience_s = Provider(), PATIENCE_S
        self._folder, self._numbers = folder, itertools.count()
        self._gateways: dict[str, tuple[Running, ScriptClock, asyncio.Lock]] = {}
        self._http2 = httpx2.AsyncClient(verify=False, limits=httpx2.Limits(max_connections=None))
        self._classic = httpx.AsyncClient(verify=False)
        self._starting = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def close(self) -> None:
        """End all of it."""
        for running, _, _ in self._gateways.values():
            await running.close()
        await self._stack.aclose()
        await self._http2.aclose()
        await self._classic.aclose()
        self.provider.close()

    async def play(self, scenario: Scenario, way: str, bare: Outcome | None = None) -> Outcome:
        """bare: what the bare client's caller got, whose patience is the measure for what is held back."""
        if way != "gateway":
            return await self._play(scenario, way, bare, ScriptClock(), self.provider.url)
        running, clock, lock = await self._gateway(scenario.mode)
        async with lock:
            return await self._play(scenario, way, bare, clock, running.url)

    async def _play(self, scenario: Scenario, way: str, bare: Outcome | None, clock: ScriptClock, url: str) -> Outcome:
        def waits(pieces: int) -> float:
            """The bare client holds some line ends back for good; what it has seen, ours must see, however slow the machine."""
            if bare is None:
                return 0.15
            return self.patience_s if bare.seen_by.get(pieces) else 0.02

        play, name = Play(scenario, clock, waits), str(next(self._numbers))
        self.provider.plays[name] = play
        try:
            outcome = await self._outcome(play, name, way, url, bare)
        finally:
            play.over = True
            del self.provider.plays[name]
        outcome.attempts, outcome.seen_by = len(play.arrivals), dict(play.seen_by)
        outcome.left_open = await _left_open(play)
        return outcome

    async def _outcome(self, play: Play, name: str, way: str, url: str, bare: Outcome | None) -> Outcome:
        scenario = play.scenario
        silent = any(answer.time in SILENT or answer.after == "open" for answer in scenario.answers)
        timeout = READ_S if silent else PATIENCE_S * 2
        if silent and bare is not None and (scenario.saved or "Timeout" not in (bare.error or "")):
            # Where the bare client did not wait for one, a busy machine must not make ours run into it.
            timeout = READ_S * 4
        policy = hedgerow.Policy(**POLICIES[scenario.mode])
        if way == "sync":
            sdk = _sdk(scenario, url, timeout, httpx2.Client(verify=CONTEXT), sync=True)
            ours = hedgerow.hedged(sdk, policy=policy, clock=play.clock)
            outcome: Outcome = await asyncio.to_thread(_sync_call, ours, play, name)
            return outcome
        inner: Any = self._classic if way == "classic" else self._http2
        if way == "transport":
            transport = hedgerow.AsyncTransport(
                httpx2.AsyncHTTPTransport(verify=CONTEXT), policy=policy, clock=play.clock
            )
            inner = await self._stack.enter_async_context(httpx2.AsyncClient(transport=transport))
        sdk = _sdk(scenario, url, timeout, inner, sync=False)
        if way in ("async", "classic"):
            sdk = hedgerow.hedged(sdk, policy=policy, clock=play.clock)
        return await _async_call(sdk, play, name)

    async def _gateway(self, mode: str) -> tuple[Running, ScriptClock, asyncio.Lock]:
        async with self._starting:
            return await self._started(mode)

    async def _started(self, mode: str) -> tuple[Running, ScriptClock, asyncio.Lock]:
        if mode not in self._gateways:
            clock, folder = ScriptClock(), self._folder / mode
            folder.mkdir()
            running = Running(folder, _config(self.provider.url, POLICIES[mode]), clock=clock)
            await running.started()
            self._gateways[mode] = running, clock, asyncio.Lock()
        return self._gateways[mode]


def _config(url: str, policy: dict[str, Any]) -> dict[str, Any]:
    apis = (("openai", "/v1", "/v1/*"), ("anthropic", "", "/v1/messages"), ("gemini", "", "/v1beta/*"))
    return {
        "gateway": {"listen": "127.0.0.1:0"},
        "target": [
            {"name": name, "dialect": name, "base_url": url + version, "api_key": "k"} for name, version, _ in apis
        ],
        "route": [{"path": path, "targets": [name], "policy": "p"} for name, _, path in reversed(apis)],
        "policy": {"p": {"control_share": 0.0, **policy}},
    }


def _sdk(scenario: Scenario, url: str, timeout: float, http_client: Any, *, sync: bool) -> Any:
    if scenario.dialect == "gemini":
        retries = {"attempts": scenario.max_retries + 1, "initial_delay": 0.001, "jitter": 0.0, "max_delay": 0.001}
        options: dict[str, Any] = {
            "base_url": url,
            "api_version": "v1beta",
            "timeout": int(timeout * 1000),
            "httpx_client": http_client if sync else httpx2.Client(verify=CONTEXT),
            "httpx_async_client": httpx2.AsyncClient(verify=CONTEXT) if sync else http_client,
        }
        if scenario.max_retries:
            options["retry_options"] = retries
        return genai.Client(api_key="k", http_options=options)
    common: dict[str, Any] = {
        "api_key": "k",
        "max_retries": scenario.max_retries,
        "timeout": timeout,
        "http_client": http_client,
    }
    if scenario.dialect == "messages":
        kind: Any = anthropic.Anthropic if sync else anthropic.AsyncAnthropic
        return kind(base_url=url, **common)
    kind = openai.OpenAI if sync else openai.AsyncOpenAI
    return kind(base_url=f"{url}/v1", **common)


def _asked(sdk: Any, scenario: Scenario, name: str) -> Any:
    """What the call returns: an answer or a stream, or what can be awaited for one."""
    headers = {"x-play": name}
    raw = scenario.client == "raw"
    if scenario.dialect == "gemini":
        half = sdk.models if not hasattr(sdk, "_is_async") else sdk.aio.models
        call = half.generate_content_stream if scenario.stream else half.generate_content
        return call(model="m-1", contents="hello", config={"http_options": {"headers": headers}})
    about: dict[str, Any] = {"model": "m-1", "stream": scenario.stream, "extra_headers": headers}
    if scenario.dialect == "messages":
        resource = sdk.messages
        about.update(max_tokens=99, messages=ASKED)
    elif scenario.dialect == "responses":
        resource = sdk.responses
        about.update(input="hello", store=False)
    else:
        resource = sdk.chat.completions
        about.update(messages=ASKED)
    return (resource.with_raw_response if raw and not scenario.stream else resource).create(**about)


def _plain(value: Any) -> Any:
    """Parsed objects as data. An answer that is no object of the SDK's (a text) stays what it is."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        return value
    data: dict[str, Any] = dump(exclude_unset=True, mode="python", warnings=False)
    data.pop("sdk_http_response", None)
    return data


def _is_raw(got: Any) -> bool:
    return hasattr(got, "http_response") and hasattr(got, "parse")


def _has_content(event: Any) -> bool:
    said = repr(_plain(event))
    return any(word.strip() in said for word in ("Hedges", "grow", "slowly."))


def _failed(error: BaseException, events: list[Any] | None) -> Outcome:
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or (error.code if isinstance(error, genai_errors.APIError) else None)
    headers = {name: value for name in KEPT_HEADERS if (value := getattr(response, "headers", {}).get(name))}
    kind = type(error)
    return Outcome(
        content=events,
        error=f"{kind.__module__.partition('.')[0]}.{kind.__name__}",
        message=str(error)[:200],
        status=status if isinstance(status, int) else None,
        headers=headers,
    )


async def _async_call(sdk: Any, play: Play, name: str) -> Outcome:
    scenario, events = play.scenario, list[Any]()
    try:
        async with asyncio.timeout(PATIENCE_S * 3):
            got = await _async_asked(sdk, scenario, name)
            if not scenario.stream:
                parsed = got.parse() if _is_raw(got) else got
                return Outcome(content=_plain(await parsed if isawaitable(parsed) else parsed))
            async for event in got:
                events.append(_plain(event))
                play.seen += _has_content(event)
                if scenario.client == "reads_slowly":
                    await asyncio.sleep(SLOW_S)
                if scenario.client == "leaves_middle" and play.seen:
                    await _close(got)
                    break
        return Outcome(content=events)
    except TimeoutError:
        return Outcome(content=events, error="never over")
    except Exception as error:
        return _failed(error, events if scenario.stream else None)


async def _async_asked(sdk: Any, scenario: Scenario, name: str) -> Any:
    if scenario.dialect == "gemini":
        models = sdk.aio.models
        call = models.generate_content_stream if scenario.stream else models.generate_content
        return await call(model="m-1", contents="hello", config={"http_options": {"headers": {"x-play": name}}})
    return await _asked(sdk, scenario, name)


async def _close(stream: Any) -> None:
    closing: Callable[[], Any] | None = getattr(stream, "close", None) or getattr(stream, "aclose", None)
    if closing is not None:
        await closing()


def _sync_call(sdk: Any, play: Play, name: str) -> Outcome:
    scenario, events = play.scenario, list[Any]()
    try:
        got = _asked(sdk, scenario, name)
        if not scenario.stream:
            return Outcome(content=_plain(got.parse() if _is_raw(got) else got))
        for event in got:
            events.append(_plain(event))
            play.seen += _has_content(event)
            if scenario.client == "leaves_middle" and play.seen:
                got.close()
                break
        return Outcome(content=events)
    except Exception as error:
        return _failed(error, events if scenario.stream else None)
    finally:
        hedgerow.hedger_of(sdk).close()


async def _left_open(play: Play) -> int:
    """How many of the provider's answers are still under way, though the caller has all it will get. Losers may take a moment."""
    for _ in range(int(PATIENCE_S / 0.005)):
        left = sum(not arrival.over for arrival in play.arrivals)
        if not left:
            return 0
        await asyncio.sleep(0.005)
    return left

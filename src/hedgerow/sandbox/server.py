"""The loopback provider itself: takes connections, routes requests, decides each answer and keeps the counters."""

import asyncio
import ssl
import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

import orjson

from hedgerow.clock import ScaledClock
from hedgerow.errors import SettingError
from hedgerow.sandbox.answering import Job, play
from hedgerow.sandbox.anthropic import AnthropicMessages
from hedgerow.sandbox.connection import Connection, ConnectionLost
from hedgerow.sandbox.content import Answer, Call, ReportedUsage, compose, tool_calls
from hedgerow.sandbox.draws import Arrival, Draw, DrawSource
from hedgerow.sandbox.gemini import GeminiContent, GeminiWhole
from hedgerow.sandbox.http1 import BadRequest, HttpRequest, read_request, response_head
from hedgerow.sandbox.meter import BILLS, Bill, Entry, Meter
from hedgerow.sandbox.openai_chat import OpenAIChat
from hedgerow.sandbox.openai_embeddings import OpenAIEmbeddings
from hedgerow.sandbox.openai_errors import error_body
from hedgerow.sandbox.openai_responses import OpenAIResponses
from hedgerow.sandbox.profile_files import load_profile
from hedgerow.sandbox.replayed import load_calls
from hedgerow.sandbox.script import Script, parse_script
from hedgerow.sandbox.timeline import pace, refusal_step
from hedgerow.sandbox.token_counts import TokenCounts
from hedgerow.sandbox.wire_format import WireFormat

__all__ = ["Sandbox", "SandboxSettings"]

HOST = "127.0.0.1"
BACKLOG = 4096
MODELS = ("sandbox-large", "sandbox-small", "sandbox-embedding")
WIRE_FORMATS: tuple[WireFormat, ...] = (
    OpenAIChat(),
    OpenAIEmbeddings(),
    OpenAIResponses(),
    AnthropicMessages(),
    GeminiContent(),
    GeminiWhole(),
    TokenCounts(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """How a sandbox behaves. SettingError for values it cannot have.

    `port` 0 takes a free one. `profile`: a shipped name or a .toml file; also the prices. `replay`: a .csv of real calls
    in place of the profile's draws, for every tier alike. `time_scale` > 0: real seconds per provider second. `bill`: what
    a disconnected request is charged, so_far | full | none. `tls`: https with a self-signed certificate (needs
    `cryptography`).
    """

    port: int = 0
    profile: str = "openai-like"
    replay: str | None = None
    seed: int = 1
    time_scale: float = 1.0
    bill: Bill = "so_far"
    tls: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise SettingError("port", self.port, "0 (any free port) to 65535")
        if not 0 < self.time_scale <= 1000:
            raise SettingError("time_scale", self.time_scale, "above 0 to 1000 real seconds per provider second")
        if self.bill not in BILLS:
            raise SettingError("bill", self.bill, ", ".join(BILLS))


class Sandbox:
    """A provider on 127.0.0.1, as an async context manager. Belongs to one event loop.

    `url` has no path: an OpenAI client takes `url + "/v1"`.
    """

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self.settings = settings or SandboxSettings()
        profile = load_profile(self.settings.profile)
        replay = self.settings.replay
        self._draws: DrawSource = profile if replay is None else load_calls(Path(replay))
        self._priority_draws: DrawSource = profile.at_priority() if replay is None else self._draws
        self._clock = ScaledClock(self.settings.time_scale)
        self._meter = Meter(profile.prices, self.settings.bill)
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._answers = 0
        # What becomes of requests that bring no script of their own, and the case that they are counted as.
        self._scripts: tuple[Script, ...] = ()
        self._scripted = 0
        self.url = ""

    async def start(self) -> None:
        """Starts to listen. OSError if the port is taken."""
        context: ssl.SSLContext | None = None
        if self.settings.tls:
            from hedgerow.sandbox.certificate import self_signed_context

            context = self_signed_context(HOST)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._serve), HOST, self.settings.port, ssl=context, backlog=BACKLOG
        )
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if context else 'http'}://{HOST}:{port}"

    async def close(self) -> None:
        """Stops to listen and ends every connection. Harmless when it is closed already."""
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        for connection in list(self._connections):
            connection.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> "Sandbox":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def stats(self, case: str | None = None) -> dict[str, object]:
        """What `GET /_sandbox/stats` answers. case: the only one to list, None = all."""
        return {"now_s": self._clock.now(), **self._meter.as_dict(case)}

    def reset(self, keep: Connection | None = None) -> None:
        """Forgets all counters, cases and scripts, and drops every connection but `keep` that has an answer under way."""
        self._meter.reset()
        self._scripts = ()
        for connection in self._connections:
            if connection.busy and connection is not keep:
                connection.abort()

    async def _serve(self, connection: Connection) -> None:
        self._connections.add(connection)
        try:
            while await self._one_request(connection):
                pass
        except ConnectionLost:
            pass
        except Exception:
            # Ours, not the client's: shown to whoever runs the sandbox; the client sees a cut connection.
            traceback.print_exc()
            connection.abort()
        finally:
            self._connections.discard(connection)
            connection.close()

    async def _one_request(self, connection: Connection) -> bool:
        """Reads and answers one request; is the connection good for another?"""
        try:
            request = await read_request(connection)
        except BadRequest as error:
            self._reply(connection, error.status, error_body(error.status, str(error), None), keep_alive=False)
            return False
        connection.busy = True
        try:
            return await self._answer(request, connection)
        except BadRequest as error:
            wire = _wire_of(request)
            body = (wire.error_body if wire else error_body)(error.status, str(error), None)
            return self._reply(connection, error.status, body, keep_alive=request.keep_alive)
        finally:
            connection.busy = False

    async def _answer(self, request: HttpRequest, connection: Connection) -> bool:
        route = (request.method, request.path.rstrip("/"))
        if route == ("GET", "/_sandbox/stats"):
            case = request.headers.get("x-sandbox-case")
            return self._reply(connection, 200, orjson.dumps(self.stats(case)), keep_alive=request.keep_alive)
        if route == ("POST", "/_sandbox/reset"):
            self.reset(connection)
            return self._reply(connection, 200, b"{}", keep_alive=request.keep_alive)
        if route == ("POST", "/_sandbox/script"):
            self._scripts, case = _scripts_of(request.body.decode(errors="replace")), f"scripted/{self._scripted}"
            self._scripted += 1
            return self._reply(connection, 200, orjson.dumps({"case": case}), keep_alive=request.keep_alive)
        if request.method in ("GET", "HEAD") and route[1] in ("/v1/models", "/models"):
            head_only = request.method == "HEAD"
            return self._reply(connection, 200, _models(), keep_alive=request.keep_alive, head_only=head_only)
        wire = _wire_of(request)
        if wire is None:
            raise BadRequest(f"the sandbox has no {request.method} {request.path}", 404)
        if request.method != "POST":
            raise BadRequest(f"{request.path} takes POST, not {request.method}", 405)
        job = self._job(request, wire)
        await play(job, connection, self._meter, self._clock)
        return job.keep_alive and not connection.gone

    def _job(self, request: HttpRequest, wire: WireFormat) -> Job:
        arrived_s = self._clock.now()
        call = wire.read(request.path.rstrip("/"), request.body)
        case, header = request.headers.get("x-sandbox-case"), request.headers.get("x-sandbox-script")
        scripts = self._scripts if header is None else _scripts_of(header)
        if case is None and header is None and scripts:
            case = f"scripted/{self._scripted - 1}"
        part, number = self._meter.number_of(case)
        arrival = Arrival(seed=self.settings.seed, part=part, number=number)
        scripted = scripts[min(number, len(scripts) - 1)] if scripts else None
        # A script means the same at every tier, also where it leaves something to the draw.
        eased = scripted is None and call.service_tier == "priority"
        draw = (self._priority_draws if eased else self._draws).draw(arrival)
        script = scripted or Script()
        answer = self._compose(script, draw, call, arrival)
        entry = Entry(
            arrived_s=arrived_s,
            input_tokens=call.input_tokens,
            planned_tokens=len(answer.pieces) * answer.n if script.raw_body is None else 0,
            service_tier=answer.service_tier,
        )
        self._meter.open(case, entry)
        return Job(
            status=draw.status if scripted is None else script.status,
            script=script,
            arrivals=partial(self._meter.arrivals_of, case),
            rhythm=pace(scripted, draw),
            refusal=refusal_step(scripted, draw),
            answer=answer,
            wire=wire,
            entry=entry,
            may_chunk=request.may_chunk,
            keep_alive=request.keep_alive,
            headers={"x-request-id": f"req_{answer.id.rpartition('-')[2]}"},
        )

    def _compose(self, script: Script, draw: Draw, call: Call, arrival: Arrival) -> Answer:
        tokens, reason = draw.tokens if script.tokens is None else script.tokens, script.finish_reason
        if script.tokens is None and call.max_tokens is not None and call.max_tokens < tokens:
            tokens, reason = call.max_tokens, reason or "length"
        pieces = compose(script, call, tokens, arrival.attempt_luck("text")) if call.generates else ()
        if reason is None and script.end == "done":
            reason = "tool_calls" if tool_calls(script, call) else "stop"
        n = script.n or call.n
        reported = {
            "input_tokens": call.input_tokens,
            "output_tokens": len(pieces) * n,
            "reasoning_tokens": min(script.reasoning_tokens, len(pieces)) * n,
        } | dict(script.usage_tokens)
        self._answers += 1
        return Answer(
            id=f"chatcmpl-{arrival.attempt_luck('id').getrandbits(64):016x}{self._answers:06x}",
            created_at_s=int(self._clock.utc().timestamp()),
            call=call,
            n=n,
            pieces=pieces,
            finish_reason=reason,
            service_tier=script.service_tier or call.service_tier or "default",
            usage=ReportedUsage(**reported) if script.usage else None,
        )

    def _reply(
        self, connection: Connection, status: int, body: bytes, *, keep_alive: bool, head_only: bool = False
    ) -> bool:
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        headers["connection"] = "keep-alive" if keep_alive else "close"
        connection.write(response_head(status, headers) + (b"" if head_only else body))
        if not keep_alive:
            connection.close()
        return keep_alive


def _wire_of(request: HttpRequest) -> WireFormat | None:
    """The API that a path belongs to."""
    return next((wire for wire in WIRE_FORMATS if wire.handles(request.path.rstrip("/"))), None)


def _scripts_of(text: str) -> tuple[Script, ...]:
    try:
        return parse_script(text)
    except SettingError as error:
        raise BadRequest(str(error)) from None


def _models() -> bytes:
    entries = [{"id": model, "object": "model", "created": 0, "owned_by": "hedgerow"} for model in MODELS]
    return orjson.dumps({"object": "list", "data": entries})

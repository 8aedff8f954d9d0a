"""A provider on loopback that plays scenarios step by step, any number at once. A request says by its header `x-play` which
play it belongs to; answers go by the order in which a play's requests come."""

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.never_worse.clock import ScriptClock
from tests.never_worse.scenario import Scenario
from tests.never_worse.wire import Close, Hold, Pause, Send, UntilSeen, steps_of

__all__ = ["PATIENCE_S", "Arrival", "Play", "Provider"]

TRY = b"x-stainless-retry-count:"
PATIENCE_S = 20.0
TURN_S, HELD_TURN_S = 0.004, 0.05
IDLE_TURNS, IDLE_STEP_S = (
    10,
    0.25,
)  # script time that passes by itself once a provider has said all: for a pause of ours


@dataclass
class Arrival:
    """One request of a play, and what the provider saw of its end: `sent_all`: every step was done; `left`: the client closed
    before."""

    streamed: bool
    sent_all: bool = False
    left: bool = False
    over: bool = False


@dataclass
class Play:
    """One scenario on its way through one client. `seen`: pieces of content that the client has had; `seen_by`: how many it
    had when each piece had been sent and waited for. `patience`: for each piece, how long it may take to be seen (None = as
    long as needed)."""

    scenario: Scenario
    clock: ScriptClock
    waits: Callable[[int], float] = lambda _: 0.2
    arrivals: list[Arrival] = field(default_factory=list)
    seen: int = 0
    seen_by: dict[int, bool] = field(default_factory=dict)
    over: bool = False


class Provider:
    """Runs in a thread with a loop of its own."""

    def __init__(self) -> None:
        self.plays: dict[str, Play] = {}
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=500)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()

    def close(self) -> None:
        """End it."""
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            headers = dict(
                line.lower().split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:] if ": " in line
            )
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            play = self.plays.get(headers.get("x-play", ""))
            if play is not None:
                await self._answer(play, head, body, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, play: Play, head: bytes, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        number = len(play.arrivals)
        streamed = b"streamGenerateContent" in head.split(b"\r\n", 1)[0] or bool(json.loads(body).get("stream"))
        arrival = Arrival(streamed)
        play.arrivals.append(arrival)
        answers, place = play.scenario.answers, number
        if play.scenario.by_try:
            place = next((int(line[-1:]) for line in head.lower().split(b"\r\n") if line.startswith(TRY)), 0)
        leaving = asyncio.ensure_future(_left(reader))
        try:
            for step in steps_of(answers[min(place, len(answers) - 1)], play.scenario.dialect, streamed=streamed):
                if leaving.done():
                    break
                if isinstance(step, Send):
                    writer.write(step.data)
                    await writer.drain()
                elif isinstance(step, UntilSeen):
                    await self._until_seen(play, step.pieces)
                elif isinstance(step, Pause):
                    await self._pause(play, number, step.seconds)
                elif isinstance(step, Hold):
                    for _ in range(int(PATIENCE_S / HELD_TURN_S)):
                        if (await asyncio.wait({leaving}, timeout=HELD_TURN_S))[0]:
                            break
                        play.clock.advance(HELD_TURN_S * 100 if step.passes else 0.0)
                elif isinstance(step, Close):
                    arrival.sent_all = True
                    if step.reset:
                        connection: socket.socket = writer.get_extra_info("socket")
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except ConnectionError:
            arrival.left = True
        finally:
            arrival.left = arrival.left or leaving.done()
            arrival.over = True
            leaving.cancel()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await self._idle(play, number)

    async def _until_seen(self, play: Play, pieces: int) -> None:
        """Wait until the client has so many pieces. How long is too long: the play says."""
        turns = int(play.waits(pieces) / TURN_S)
        while play.seen < pieces and turns > 0 and not play.over:
            turns -= 1
            await asyncio.sleep(TURN_S)
        play.seen_by[pieces] = play.seen >= pieces

    async def _pause(self, play: Play, number: int, seconds: float) -> None:
        """Script time passes; where this makes the client send a rival, that one is done first."""
        play.clock.advance(seconds)
        turns = 250 if play.scenario.mode == "race" and number == 0 else 5
        while turns > 0 and not play.over and not any(rival.over for rival in play.arrivals[number + 1 :]):
            turns -= 1
            if not any(not rival.over for rival in play.arrivals[number + 1 :]):
                play.clock.advance(0.01)
            await asyncio.sleep(TURN_S)

    async def _idle(self, play: Play, number: int) -> None:
        """Nothing is left to be said: if the client waits for a moment of its own, it comes."""
        for _ in range(IDLE_TURNS):
            if play.over or len(play.arrivals) > number + 1:
                return
            await asyncio.sleep(TURN_S)
            play.clock.advance(IDLE_STEP_S)


async def _left(reader: asyncio.StreamReader) -> None:
    """Until the client closes its side."""
    with contextlib.suppress(ConnectionError):
        while await reader.read(1024):
            pass

"""Plays one answer to its end: waits for each step, writes what is due, and notices a client that leaves.

The body goes through BodyWriter, which frames it (chunked or not) and cuts it into small writes if a script wants that.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from hedgerow.clock import Clock
from hedgerow.sandbox.connection import Connection
from hedgerow.sandbox.content import Answer
from hedgerow.sandbox.http1 import chunk, response_head
from hedgerow.sandbox.meter import Entry, Meter, Outcome
from hedgerow.sandbox.script import Script
from hedgerow.sandbox.timeline import Pace, Step, steps
from hedgerow.sandbox.wire_format import WireFormat

__all__ = ["Job", "play"]

Closing = Literal["keep", "close", "reset", "hold"]
BODILESS = (204, 205, 304)
STEPS_PER_TURN = 256
LOOK_AGAIN_S = 0.005
REFUSAL = "The sandbox was told to answer with this status"


@dataclass(slots=True, kw_only=True)
class Job:
    """All that is decided about one answer before the first byte of it is written.

    `refusal`: for a status other than 200, when it leaves. `script` is all defaults where the request brought none.
    `arrivals`: how many requests of its case have arrived by now.
    """

    status: int
    script: Script
    arrivals: Callable[[], int]
    rhythm: Pace
    refusal: Step
    answer: Answer
    wire: WireFormat
    entry: Entry
    may_chunk: bool
    keep_alive: bool
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def stream(self) -> bool:
        """Does the body leave piece by piece?"""
        return self.answer.call.stream and self.status == 200


async def play(job: Job, connection: Connection, meter: Meter, clock: Clock) -> None:
    """Writes the answer and closes its entry in the meter; ends or keeps the connection as script and client want."""
    outcome: Outcome | None = None
    closing: Closing = "close"
    try:
        outcome, closing = await _Player(job, connection, meter, clock).run()
    finally:
        # Without an outcome something broke or the server stops; the caller of the task reports it.
        if closing != "hold":
            meter.close(job.entry, outcome or "failed", clock.now())
    if closing == "hold":
        await connection.wait_lost()
        meter.close(job.entry, "failed", clock.now())
    elif closing == "reset":
        await connection.reset()
    elif closing == "close" or not job.keep_alive:
        connection.close()


class _Player:
    def __init__(self, job: Job, connection: Connection, meter: Meter, clock: Clock) -> None:
        self._job, self._connection, self._meter, self._clock = job, connection, meter, clock
        self._heed_gone = not job.script.ignore_disconnect
        self._body = _BodyWriter(job, connection, meter)

    async def run(self) -> tuple[Outcome, Closing]:
        """Step by step; steps that are due together leave in one write."""
        waiting: list[tuple[bytes, int]] = []
        begun_s = await self._begun_s()
        for step in self._steps():
            due_s = self._job.entry.due_s = begun_s + step.due_s
            if due_s > self._clock.now():
                await self._write(waiting)
                if not await self._connection.wait_until(due_s, self._clock, heed_gone=self._heed_gone):
                    return "disconnected", "close"
            elif len(waiting) >= STEPS_PER_TURN:
                await self._write(waiting)
                # Long answers that are due at once must not keep the loop from seeing who leaves.
                await asyncio.sleep(0)
            if self._connection.gone and self._heed_gone:
                return "disconnected", "close"
            if step.what in ("end", "error", "cut"):
                await self._write(waiting)
                return await self._end(step)
            waiting += self._bytes_of(step)
        raise AssertionError("every plan has an end")

    async def _begun_s(self) -> float:
        """What the times of the steps count from. It waits for the arrivals that the script counts on."""
        begun_s, awaited = self._job.entry.arrived_s, self._job.script.await_arrivals or 1
        while self._job.arrivals() < awaited:
            begun_s = self._clock.now() + LOOK_AGAIN_S
            if not await self._connection.wait_until(begun_s, self._clock, heed_gone=self._heed_gone):
                break
        return begun_s

    def _steps(self) -> "list[Step]":
        job = self._job
        if job.status != 200:
            return [job.refusal]
        tokens = len(job.answer.pieces)
        if job.script.raw_body is not None:
            # The raw body stands for one token, so that cuts and stalls can come before or after it.
            tokens = 1 if job.stream else 0
        return list(steps(job.script, job.rhythm, tokens, stream=job.stream))

    def _bytes_of(self, step: Step) -> list[tuple[bytes, int]]:
        """What a step in mid-stream writes, and how many tokens that is."""
        job = self._job
        wire, end = job.wire, job.script.line_end
        if step.what == "headers":
            self._body.begin(None)
            opening = wire.opening(job.answer) if job.script.role_chunk and job.script.raw_body is None else ()
            return [(frame.lines(end), 0) for frame in opening]
        if step.what == "ping":
            return [(wire.ping().lines(end), 0)]
        if job.script.raw_body is not None:
            return [(job.script.raw_body.encode(), 0)]
        return [(b"".join(frame.lines(end) for frame in wire.token(job.answer, step.number)), job.answer.n)]

    async def _end(self, step: Step) -> tuple[Outcome, Closing]:
        job = self._job
        if step.what == "cut":
            if not job.stream:
                await self._part_of_whole(step.number)
            if job.script.half_open:
                return "failed", "hold"
            return self._outcome("failed"), "reset" if job.script.reset else "close"
        if job.stream:
            await self._last_frames(step)
            self._body.finish()
        else:
            await self._whole(step)
        await self._connection.drain(heed_gone=self._heed_gone)
        return self._outcome("failed" if step.what == "error" or job.status != 200 else "completed"), "keep"

    def _outcome(self, otherwise: Outcome) -> Outcome:
        return "disconnected" if self._connection.lost and self._heed_gone else otherwise

    async def _last_frames(self, step: Step) -> None:
        job = self._job
        if job.script.raw_body is not None and step.what == "end":
            return
        frames = list(job.wire.closing(job.answer)) if step.what == "end" else []
        if step.what == "error" and job.script.error_frame is not None:
            frames.append(job.wire.error_frame(job.script.error_frame.error))
        if job.script.end == "done":
            frames += job.wire.marker()
        lines = [frame.lines(job.script.line_end) for frame in frames]
        if lines and not job.script.final_newline:
            lines[-1] = lines[-1].rstrip(b"\r\n")
        await self._write([(line, 0) for line in lines])

    async def _whole(self, step: Step) -> None:
        body = self._whole_body(step)
        self._body.begin(None if self._job.status in BODILESS else len(body))
        if self._job.status not in BODILESS:
            tokens = self._job.entry.planned_tokens if step.what == "end" and self._job.status == 200 else 0
            await self._write([(body, tokens)])

    async def _part_of_whole(self, tokens: int) -> None:
        """A cut before any token leaves nothing at all; later ones leave the head and an even share of the body."""
        if tokens == 0:
            return
        body = self._whole_body(Step(0.0, "end"))
        self._body.begin(len(body))
        share = body[: max(1, (len(body) - 1) * tokens // max(1, len(self._job.answer.pieces)))]
        await self._write([(share, tokens * self._job.answer.n)])

    def _whole_body(self, step: Step) -> bytes:
        job = self._job
        error = job.script.error_frame.error if job.script.error_frame else None
        if job.script.raw_body is not None:
            return job.script.raw_body.encode()
        if job.status != 200:
            return job.wire.error_body(job.status, REFUSAL, error)
        if step.what == "error":
            return job.wire.error_body(500, REFUSAL, error)
        return job.wire.whole(job.answer)

    async def _write(self, waiting: list[tuple[bytes, int]]) -> None:
        await self._body.write(b"".join(data for data, _ in waiting), sum(tokens for _, tokens in waiting))
        waiting.clear()
        await self._connection.drain(heed_gone=self._heed_gone)


class _BodyWriter:
    """Frames the body. The head waits for the first bytes of the body of the same moment, so that they share a segment."""

    def __init__(self, job: Job, connection: Connection, meter: Meter) -> None:
        self._job, self._connection, self._meter = job, connection, meter
        self._head = b""
        self._chunked = False

    def begin(self, length: int | None) -> None:
        """The head; `length` None for a body that ends when it ends (or a status without one)."""
        job = self._job
        kind = "text/event-stream; charset=utf-8" if job.stream else "application/json"
        headers = {"content-type": kind, **job.headers}
        if length is not None:
            headers["content-length"] = str(length)
        elif job.status not in BODILESS:
            self._chunked = job.may_chunk
            if job.may_chunk:
                headers["transfer-encoding"] = "chunked"
            else:
                job.keep_alive = False
        headers["connection"] = "keep-alive" if job.keep_alive else "close"
        self._head = response_head(job.status, headers | dict(job.script.headers))

    async def write(self, data: bytes, tokens: int) -> None:
        """Body bytes that hold so many tokens."""
        if not data and not self._head:
            return
        size = self._job.script.chunk_bytes or len(data)
        head, self._head = self._head, b""
        pieces = [data[start : start + size] for start in range(0, len(data), size)] if data else []
        if (self._job.script.chunk_bytes and head) or not pieces:
            self._connection.write(head)
            head = b""
        for piece in pieces:
            self._connection.write(head + (chunk(piece) if self._chunked else piece))
            head = b""
            if len(pieces) > 1:
                # A turn of the loop between two writes: each goes to the socket by itself.
                await asyncio.sleep(0)
                await self._connection.drain(heed_gone=not self._job.script.ignore_disconnect)
        self._meter.wrote(self._job.entry, tokens=tokens, body_bytes=len(data))

    def finish(self) -> None:
        """The clean end of the body."""
        if self._chunked:
            self._connection.write(chunk(b""))

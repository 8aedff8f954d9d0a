"""Hands the winner over: replays what was read before the commit, then relays the open response as it comes.

The delivery owns the winner's connection. Reading to the end, closing, cancelling the read, or dropping it unread each end
the race and close whatever is still open.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from hedgerow.clock import Clock
from hedgerow.race import signals as s
from hedgerow.race.attempt import Attempt
from hedgerow.race.referee import RaceSeen
from hedgerow.race.upstream import Call
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.race import Stage

__all__ = ["Deliverer", "Delivery"]


class Deliverer(RaceSeen, Protocol):
    """The race that a delivery belongs to, as the delivery deals with it."""

    @property
    def call(self) -> Call: ...

    @property
    def clock(self) -> Clock: ...

    def tell(self, signal: s.Signal) -> None:
        """Give the machine a signal and do what it says."""

    def reap(self) -> None:
        """Look whether all is over and everything is closed."""

    def mark_delivered(self) -> None:
        """The caller takes the first bytes of the answer."""


class Delivery:
    """The chosen attempt's response: status, headers and an async iterator of its raw body bytes.

    For one reader at a time. aclose() is idempotent and may be called from any task of the loop that ran the race.
    """

    def __init__(self, race: Deliverer, attempt: Attempt) -> None:
        assert attempt.response is not None
        self.response = attempt.response
        self._race, self._attempt = race, attempt
        self._prefix = attempt.chunks
        self._live = race.state.stage is Stage.DELIVERING
        self._next = 0
        self._cut_off = self._told = False
        self._loop = asyncio.get_running_loop()

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.response.status if self._attempt.rewritten is None else self._attempt.rewritten[0]

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        """The response's headers, as the provider sent them; of an answer that was put together, those of the whole."""
        return self.response.headers if self._attempt.rewritten is None else self._attempt.rewritten[1]

    @property
    def race(self) -> RaceSeen:
        """Where it comes from."""
        return self._race

    @property
    def whole(self) -> bool:
        """Is all of it here already, so that reading it waits for nothing?"""
        return not self._live

    @property
    def at_hand(self) -> bool:
        """Is there something to read that need not be waited for, if only the end?"""
        return self._next < len(self._prefix) or not self._live

    def __aiter__(self) -> "Delivery":
        return self

    async def __anext__(self) -> bytes:
        if self._next < len(self._prefix):
            self._race.mark_delivered()
            self._next += 1
            return self._prefix[self._next - 1]
        if not self._live:
            self._raise_if_cut_off()
            raise StopAsyncIteration
        try:
            chunk = await self._attempt.next_chunk()
        except Exception as error:
            await self._end(self._race.call.failure_of(error))
            self._raise_if_cut_off(error)
            raise
        except BaseException:
            await self.aclose()
            raise
        if not chunk:
            await self._end(self._verdict())
            self._raise_if_cut_off()
            raise StopAsyncIteration
        self._race.mark_delivered()
        if self._attempt.at_end_mark and not self._told:
            # The answer is whole: no clock of ours runs any more, though its connection may stay open.
            self._told = True
            self._race.tell(s.Ended(self._race.clock.now(), self._verdict()))
        return chunk

    async def aclose(self) -> None:
        """The caller needs no more. After the dialect's own end this is a complete answer, after an error in the stream a failed
        one (SDKs close when they raise it), before them the caller left."""
        if not self._live:
            return
        reader = self._attempt.reader
        if reader is not None and (reader.facts.ended or reader.facts.failure is not None):
            await self._end(self._verdict())
            return
        self._live = False
        self._race.tell(s.Left(self._race.clock.now()))
        await self._attempt.close()

    async def _end(self, failure: Failure | None) -> None:
        self._live = False
        if self._told:
            await self._attempt.close()
            self._race.reap()
            return
        self._cut_off = self._race.state.stage is Stage.OVER  # ended already, though not by its reader
        self._race.tell(s.Ended(self._race.clock.now(), failure))
        await self._attempt.close()
        self._race.reap()

    def _verdict(self) -> Failure | None:
        """How a body that has come to its end ended."""
        reader = self._attempt.reader
        if reader is None or (reader.facts.failure is None and (reader.facts.ended or not self._attempt.sees)):
            return None
        return reader.facts.failure or Failure(kind=FailureKind.TRANSIENT, error="cut")

    def _raise_if_cut_off(self, error: Exception | None = None) -> None:
        """A read that ended because the deadline or the stall watchdog closed its connection says so. The SDK's own time-out
        is none of ours: it comes through as it is."""
        if not self._cut_off:
            return
        race, rules = self._race, self._race.state.rules
        failure = race.state.entrants[self._attempt.number].failure
        if race.outcome == "deadline":
            limit = f"timeout_s = {rules.timeout_s:g} s"
            raise race.call.deadline_error(f"not read to its end within {limit}") from error
        if race.outcome == "failed" and failure is not None and failure.kind is FailureKind.TIMEOUT:
            raise race.call.attempt_time_out(f"{failure.error}: nothing came for {rules.stall_s:g} s") from error

    def __del__(self) -> None:
        if self._live and not self._loop.is_closed():
            # Dropped unread: nobody can close it any more but us. From any thread, since the collector runs in any.
            self._loop.call_soon_threadsafe(_drop, self._race, self._attempt, self._told)


def _drop(race: Deliverer, attempt: Attempt, told: bool) -> None:
    race.tell(s.Left(race.clock.now()))
    if told:  # the race was over at the end mark, so that nobody else closes the connection
        closing = asyncio.get_running_loop().create_task(attempt.close())
        closing.add_done_callback(lambda _: race.reap())

"""Obeys the machine: the only owner of a race's tasks and timer.

The primary runs in the caller's task, backups in tasks of their own; losers are cancelled and never waited for.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from hedgerow.clock import Clock, Timer
from hedgerow.policy.gate import Permit
from hedgerow.policy.trouble import will_end_late
from hedgerow.race import signals as s
from hedgerow.race.attempt import CUT, UNREADABLE, Attempt, Verdicts
from hedgerow.race.foreground import Foreground
from hedgerow.race.machine import advance, start
from hedgerow.race.order import Order
from hedgerow.race.referee import Referee
from hedgerow.race.stream import Delivery
from hedgerow.race.upstream import Call
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.race import Fate, RaceRules, Stage, Trigger

__all__ = ["Race"]

log = logging.getLogger("hedgerow")
BROKEN: Mapping[str, str] = MappingProxyType(
    {
        CUT: "the provider's stream ended before its end mark (upstream_stream asked for it in the caller's stead)",
        UNREADABLE: "the provider's stream cannot be read (upstream_stream asked for it in the caller's stead)",
    }
)


class Race:
    """One request's race. Await run() once; the Delivery it returns must be read to its end or closed."""

    def __init__(self, call: Call, rules: RaceRules, order: Order, *, clock: Clock, referee: Referee) -> None:
        self.call, self.order, self.clock = call, order, clock
        self.state = start(rules, clock.now())
        self.attempts: list[Attempt] = []
        self.outcome: str | None = None
        self.chosen: int | None = None
        self.trigger_at_s: float | None = None
        self.decided_s: float | None = None
        self.delivered_s: float | None = None
        self.over_s: float | None = None
        self._referee = referee
        self._primary: Foreground | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._timer: Timer | None = None
        self._wakes_at_s: float | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._signals: deque[s.Signal] = deque()
        self._obeying = False
        self._told_finished = False

    async def run(self) -> Delivery:
        """The answer, once the race is decided. Raises what the caller would have seen without hedging: the carrier's
        own errors, its time-out, CancelledError; then every attempt has been closed."""
        self.tell(s.Begin(self.clock.now(), self._referee.outlook()))
        try:
            assert self._primary is not None
            await self._primary
            self.reap()
            if self.decided_s is None:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            if self.chosen and (its_task := self._tasks.get(self.chosen)) is not None:
                await asyncio.wait({its_task})  # the last bytes of its body: a moment
            return self._delivery()
        except BaseException:  # the caller leaves, or gets the error of a race that is over (then this changes nothing)
            self.tell(s.Left(self.clock.now()))
            self._end_rests(but=None)
            raise
        finally:
            self._primary = None  # it holds us: without a cycle a finished race is freed at once, not by the collector
            self.reap()

    def tell(self, signal: s.Signal) -> None:
        """Give the machine a signal and do what it says."""
        self._signals.append(signal)
        if self._obeying:
            return  # an action is being carried out: the loop below comes to it
        self._obeying = True
        try:
            while self._signals:
                self.state, actions = advance(self.state, self._signals.popleft())
                for action in actions:
                    self._perform(action)
        finally:
            self._obeying = False
        self.reap()

    def reap(self) -> None:
        """Tell the referee when all is over and everything is closed. Once."""
        if self.state.stage is not Stage.OVER or self._told_finished or self._tasks or self.open_attempts:
            return
        self._told_finished = True
        self._referee.finished(self)

    def mark_delivered(self) -> None:
        """The caller takes the first bytes of the answer."""
        if self.delivered_s is None:
            self.delivered_s = self.clock.now()

    @property
    def plan(self) -> str:
        return self._referee.plan(self)

    @property
    def open_attempts(self) -> int:
        """Attempts whose connection is not closed yet."""
        return sum(attempt.closed_s is None for attempt in self.attempts)

    def _perform(self, action: s.Action) -> None:
        match action:
            case s.Launch():
                self._launch(action)
            case s.Cancel():
                self._cancel(action.attempt)
            case s.Wake():
                self._set_timer(action.at_s)
            case s.Ask():
                self._ask(action)
            case s.Commit() | s.GiveUp():
                self.chosen = action.attempt
                self._decide()
            case s.Finish():
                self.outcome, self.over_s = action.outcome, self.clock.now()
                self._decide()
                self._referee.over(self)

    def _launch(self, action: s.Launch) -> None:
        attempt = Attempt(action.attempt, action.target, action.reason, self.clock)
        self.attempts.append(attempt)
        attempt.chars_per_token = self._referee.chars_per_token(action.target)
        verdicts = Verdicts(
            content=self._on_content,
            answered=self._on_answered,
            aside=self._on_aside,
            failed=self._on_failed,
            begun=self._on_begun,
            progressed=self._on_progress,
        )
        run = attempt.run(self.call, self._order_for(action), self.state.rules.commit_on, verdicts)
        if action.attempt == 0:
            self._primary = Foreground(run, lambda rest: self._background(0, rest))
        else:
            self._background(action.attempt, run)

    def _order_for(self, action: s.Launch) -> Order:
        """What an attempt sends. Where a stream that the caller had not asked for was no answer, the next one does without."""
        broken = any(attempt.broken is not None for attempt in self.attempts)
        return replace(self.order, as_stream=None) if action.reason == "error" and broken else self.order

    def _cancel(self, number: int) -> None:
        attempt = self.attempts[number]
        attempt.cancelled_s = self.clock.now()
        if number == 0 and self._primary is not None and self._primary.running:
            self._primary.let_go()
        elif attempt.parked:
            self._background(number, attempt.close())
        elif (task := self._tasks.get(number)) is not None:
            task.cancel()

    def _ask(self, ask: s.Ask) -> None:
        if ask.failed is None and self.trigger_at_s is None:
            self.trigger_at_s = self.clock.now()
        try:
            permit = self._referee.ask(self, ask)
        except Exception:  # logged here; the call goes on with what runs
            log.exception("deciding on a backup failed; none is sent")
            permit = Permit(None, "trouble")
        now_s, view = self.clock.now(), self._view(permit.target)
        self._signals.append(s.reply(ask, permit, now_s, view))

    def _decide(self) -> None:
        """The answer (or that there will be none) is known: wake the caller, tell the referee. Once."""
        if self.decided_s is not None:
            return
        self.decided_s = self.clock.now()
        self._end_rests(but=self.chosen)
        self._referee.decided(self)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end_rests(self, but: int | None) -> None:
        """Nobody needs what stands behind the errors of the other attempts."""
        for attempt in self.attempts:
            if not attempt.reads_rest or attempt.number == but:
                continue
            attempt.reads_rest = False
            if attempt.number == 0 and self._primary is not None and self._primary.running:
                self._primary.let_go()
            elif (task := self._tasks.get(attempt.number)) is not None:
                task.cancel()

    def _delivery(self) -> Delivery:
        """What the caller gets: the chosen attempt's answer, or its error, with the other errors as notes."""
        if self.chosen is None:
            raise self.call.deadline_error(f"no answer within timeout_s = {self.state.rules.timeout_s:g} s")
        attempt, failure = self.attempts[self.chosen], self.state.entrants[self.chosen].failure
        timed_out = failure is not None and failure.kind is FailureKind.TIMEOUT
        if attempt.response is not None and attempt.error is None and attempt.broken is None and not timed_out:
            return Delivery(self, attempt)
        error = attempt.error
        if error is None and attempt.broken is not None:
            error = self.call.broken_answer(BROKEN[attempt.broken])
        if error is None:
            error = self.call.attempt_time_out(f"attempt {self.chosen}: {failure.error if failure else 'no answer'}")
        for other in self.state.entrants:
            if other.number != self.chosen and other.failure is not None:
                error.add_note(f"hedgerow: attempt {other.number} ({other.reason}) failed too: {other.failure.error}")
        raise error

    def _set_timer(self, at_s: float | None) -> None:
        if at_s == self._wakes_at_s:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._wakes_at_s = None, at_s
        if at_s is not None:
            self._timer = self.clock.call_later(at_s - self.clock.now(), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._wakes_at_s = None
        self.tell(s.Tick(self.clock.now(), self._view()))

    def _on_content(self, number: int, readable: bool) -> bool:
        self.tell(s.Content(self.clock.now(), number, readable))
        return self.state.entrants[number].fate is Fate.WON

    def _on_begun(self, _number: int) -> None:
        """Content has come to a caller who waits for all of it: from now on the stream can stall."""
        if self.state.rules.stall_s is not None:
            self.tell(s.Tick(self.clock.now(), self._view()))

    def _on_progress(self, number: int) -> None:
        """Look at a stream's pace with each of its chunks; the machine is asked only when it will end late."""
        rules = self.state.rules
        watched = (
            rules.may_trigger and rules.trigger is Trigger.LAG and not self.state.trigger_spent and self.state.room
        )
        attempt = self.attempts[number]
        if watched and will_end_late(attempt.progress, self._referee.outlook(attempt.target)):
            self.tell(s.Tick(self.clock.now(), self._view()))

    def _on_answered(self, number: int, valid: bool, readable: bool) -> None:
        self.tell(s.Answered(self.clock.now(), number, valid, readable))

    def _on_aside(self, number: int) -> None:
        self.tell(s.Answered(self.clock.now(), number, valid=False, readable=False, aside=True))

    def _on_failed(self, number: int, failure: Failure) -> None:
        if number < len(self.state.entrants) and self.state.stage is Stage.RACING:
            self._referee.failed(self.state.entrants[number], failure)
        self.tell(s.Failed(self.clock.now(), number, failure, self._view()))

    def _view(self, going_to: int | None = None) -> s.View:
        """The moment. going_to: the target of an attempt that is about to start."""
        running = [entrant for entrant in self.state.entrants if entrant.fate in (Fate.LIVE, Fate.WON)]
        targets = {entrant.target for entrant in running} | {going_to or 0}
        return s.View(
            tuple(self.attempts[entrant.number].progress for entrant in running),
            self._referee.outlook(),
            {target: self._referee.outlook(target) for target in targets if target} if max(targets) else None,
        )

    def _background(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[number] = task
        task.add_done_callback(lambda done: self._on_task_done(number, done))

    def _on_task_done(self, number: int, task: asyncio.Task[None]) -> None:
        if self._tasks.get(number) is task:
            del self._tasks[number]
        attempt = self.attempts[number]
        if task.cancelled():
            attempt.closed_s = attempt.closed_s or self.clock.now()  # perhaps it never ran
        elif (error := task.exception()) is not None:
            attempt.error = attempt.error or _as_exception(error)
        self.reap()


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(f"attempt ended by {error!r}")

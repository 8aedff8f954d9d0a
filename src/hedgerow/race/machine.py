"""Every rule of a race, as one pure function: `advance(state, signal) -> (state, actions)`.

The rules: one answer, from one attempt; an error never beats a live attempt; losers are cancelled in the very step that
commits; no live attempt and none allowed means finish now. No clock, no I/O, no randomness.
"""

from math import inf

from hedgerow.policy.trouble import Progress, trouble_from
from hedgerow.race import signals as s
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.race import AtHome, CommitOn, Entrant, Fate, RaceRules, RaceState, Stage, Trigger

__all__ = ["advance", "start"]

Step = tuple[RaceState, list[s.Action]]

FAST_S = 0.5  # an attempt that fails within the SDKs' first back-off has met what its replacement would meet as well
SLACK_S = 1e-9  # a timer may come this much early by rounding
UNREADABLE = Failure(
    kind=FailureKind.TRANSIENT, error="unreadable", in_answer=True
)  # a kept answer in an unknown coding
NO_WAKE = s.Wake(None)


def start(rules: RaceRules, at_s: float) -> RaceState:
    """A race that has not begun; send it Begin."""
    return RaceState(rules=rules, began_s=at_s)


def advance(state: RaceState, signal: s.Signal) -> Step:
    """The state after a signal, and what to do, in order. A signal that comes too late changes nothing."""
    if state.stage is Stage.OVER:
        return state, []
    match signal:
        case s.Begin():
            return _begin(state, signal)
        case s.Tick():
            return _tick(state, signal)
        case s.Content():
            return _content(state, signal)
        case s.Answered():
            return _answered(state, signal)
        case s.Failed():
            return _failed(state, signal)
        case s.Granted():
            return _granted(state, signal)
        case s.Refused():
            return _refused(state, signal)
        case s.Postponed():
            return _postponed(state, signal)
        case s.Ended():
            return _ended(state, signal)
        case s.Left():
            return _over(state, "caller_left", Fate.CALLER_LEFT)


def _begin(state: RaceState, signal: s.Begin) -> Step:
    state = RaceState(state.rules, state.began_s, Stage.RACING, (Entrant(0, 0, "primary", signal.at_s),))
    view = s.View((Progress(0, signal.at_s),), signal.outlook)
    return state, [s.Launch(0, 0, "primary"), _wake(state, signal.at_s, view)]


def _tick(state: RaceState, signal: s.Tick) -> Step:
    now_s, view = signal.at_s, signal.view
    if state.rules.timeout_s is not None and now_s >= state.began_s + state.rules.timeout_s - SLACK_S:
        if state.stage is Stage.DELIVERING and view.progress and all(progress.ended for progress in view.progress):
            return state, [NO_WAKE]  # the answer is there, only its connection is still open
        return _over(state, "deadline", Fate.DEADLINE)
    if state.stage is Stage.DELIVERING:
        stalled = next((failure for progress in view.progress if (failure := _expired(state, progress, now_s))), None)
        return (state, [_wake(state, now_s, view)]) if stalled is None else _stall(state, stalled)
    if state.wants:
        return state, [_wake(state, now_s, s.BLIND)]
    expired = [
        (progress.attempt, failure) for progress in view.progress if (failure := _expired(state, progress, now_s))
    ]
    if expired:
        return _expire(state, expired, signal)
    if state.retry_at_s is not None and now_s >= state.retry_at_s - SLACK_S:
        return _retry(state, signal)
    if _trouble_at(state, now_s, view) > now_s + SLACK_S:
        return state, [_wake(state, now_s, view)]
    reason = str(state.rules.trigger)
    return state._replace(wants=reason), [s.Ask(reason)]


def _expire(state: RaceState, expired: list[tuple[int, Failure]], signal: s.Tick) -> Step:
    """Attempts that ran out of a time-out of ours fail together, the oldest first."""
    actions: list[s.Action] = []
    for number, failure in expired:
        if state.stage is Stage.OVER:
            break
        state, more = _fail(state, number, failure, signal.at_s)
        actions += [s.Cancel(number), *more]
    if state.stage is Stage.RACING and not state.wants:
        actions.append(_wake(state, signal.at_s, signal.view))
    return state, actions


def _content(state: RaceState, signal: s.Content) -> Step:
    if not _runs(state, signal.attempt) or state.rules.commit_on is CommitOn.COMPLETE:
        return state, []
    if not signal.readable and _is_kept_back(state, signal.attempt):
        return state, []
    return _commit(state, signal.attempt, signal.at_s)


def _is_kept_back(state: RaceState, number: int) -> bool:
    """Does an answer that cannot be looked into wait for others? It may be anything. The primary's is what the bare client's
    caller gets; a backup's is for when nothing else runs, is kept or will start."""
    others = any(entrant.fate in (Fate.LIVE, Fate.KEPT) for entrant in state.entrants if entrant.number != number)
    return number != 0 and (others or state.wants is not None or state.retry_at_s is not None)


def _answered(state: RaceState, signal: s.Answered) -> Step:
    if not _runs(state, signal.attempt):
        return state, []
    # A redirect of the primary is for the caller's client to follow; a backup's does not beat an attempt that still runs.
    if signal.valid or (signal.aside and signal.attempt == 0):
        return _commit(state, signal.attempt, signal.at_s, complete=True)
    state = _with_fate(state, signal.attempt, Fate.KEPT, None if signal.readable else UNREADABLE)
    return (state, []) if _goes_on(state) else _last_resort(state)


def _failed(state: RaceState, signal: s.Failed) -> Step:
    if not _runs(state, signal.attempt):
        return state, []
    state, actions = _fail(state, signal.attempt, signal.failure, signal.at_s)
    if state.stage is Stage.RACING and not state.wants:
        actions.append(_wake(state, signal.at_s, signal.view))
    return state, actions


def _granted(state: RaceState, signal: s.Granted) -> Step:
    if state.wants is None or state.stage is not Stage.RACING:
        return state, []
    reason, actions = state.wants, list[s.Action]()
    if state.rules.resend and reason == str(state.rules.trigger):
        for late in state.live:
            state = _with_fate(state, late.number, Fate.LOST)
            actions.append(s.Cancel(late.number))
    entrant = Entrant(len(state.entrants), signal.target, reason, signal.at_s)
    state = state._replace(entrants=(*state.entrants, entrant), wants=None)
    seen = signal.view
    view = s.View((*seen.progress, Progress(entrant.number, signal.at_s)), seen.outlook, seen.elsewhere)
    return state, [*actions, s.Launch(entrant.number, entrant.target, reason), _wake(state, signal.at_s, view)]


def _refused(state: RaceState, signal: s.Refused) -> Step:
    if state.wants is None or state.stage is not Stage.RACING:
        return state, []
    by_trigger = state.wants == str(state.rules.trigger)
    state = state._replace(wants=None, trigger_spent=state.trigger_spent or by_trigger)
    return (state, [_wake(state, signal.at_s, signal.view)]) if _goes_on(state) else _last_resort(state)


def _postponed(state: RaceState, signal: s.Postponed) -> Step:
    if state.wants is None or state.stage is not Stage.RACING:
        return state, []
    state = state._replace(wants=None, retry_at_s=signal.until_s, retry_of=signal.failed)
    return state, [_wake(state, signal.at_s, signal.view)]


def _retry(state: RaceState, signal: s.Tick) -> Step:
    """The pause before a replacement is over."""
    failed, state = state.retry_of, state._replace(retry_at_s=None, retry_of=None)
    if state.room:
        return state._replace(wants="error"), [s.Ask("error", failed=failed)]
    return (state, [_wake(state, signal.at_s, signal.view)]) if state.live else _last_resort(state)


def _goes_on(state: RaceState) -> bool:
    """Does anything run that may still answer, or will?"""
    return bool(state.live) or state.wants is not None or state.retry_at_s is not None


def _ended(state: RaceState, signal: s.Ended) -> Step:
    if state.stage is not Stage.DELIVERING:
        return state, []
    if signal.failure is None:
        return _finish(state, "answered")
    winner = next(entrant.number for entrant in state.entrants if entrant.fate is Fate.WON)
    return _finish(_with_fate(state, winner, Fate.FAILED, signal.failure), "failed")


def _stall(state: RaceState, failure: Failure) -> Step:
    """The stream that is being delivered has gone silent: there is no other to switch to."""
    winner = next(entrant.number for entrant in state.entrants if entrant.fate is Fate.WON)
    state, actions = _finish(_with_fate(state, winner, Fate.FAILED, failure), "failed")
    return state, [s.Cancel(winner), *actions]


def _commit(state: RaceState, winner: int, now_s: float, *, complete: bool = False) -> Step:
    """Tie the answer to one attempt and cancel the others in the same step."""
    stage = Stage.OVER if complete else Stage.DELIVERING
    entrants = tuple([_judged(entrant, winner) for entrant in state.entrants])
    losers = [entrant.number for entrant in state.live if entrant.number != winner] if len(entrants) > 1 else []
    state = RaceState(state.rules, state.began_s, stage, entrants, state.trigger_spent)
    last = [NO_WAKE, s.Finish("answered")] if complete else [_watch(state, now_s)]
    return state, [s.Commit(winner), *map(s.Cancel, losers), *last]


def _judged(entrant: Entrant, winner: int) -> Entrant:
    """An entrant after the commit: who still ran has won or lost by it."""
    number, target, reason, started_s, fate, _ = entrant
    if number == winner:
        return Entrant(number, target, reason, started_s, Fate.WON)
    return Entrant(number, target, reason, started_s, Fate.LOST) if fate is Fate.LIVE else entrant


def _fail(state: RaceState, number: int, failure: Failure, now_s: float) -> Step:
    """One attempt failed: end the race, ask for the next attempt, wait for the others, or finish."""
    state = _with_fate(state, number, Fate.FAILED, failure)
    if failure.kind in (FailureKind.FATAL, FailureKind.CALLER_LIMIT) and number == 0:
        losers = [entrant.number for entrant in state.live]
        for loser in losers:
            state = _with_fate(state, loser, Fate.LOST)
        state, last = _finish(state, "failed")
        return state, [s.GiveUp(0), *map(s.Cancel, losers), *last]
    if state.retry_at_s is not None and _repeated_above(state) and not state.live:
        return _last_resort(state)
    if failure.may_start_next and state.rules.may_rerun and state.room and state.wants is None:
        return state._replace(wants="error"), [s.Ask("error", failed=number, at_home=_at_home(state, number, now_s))]
    return (state, []) if _goes_on(state) else _last_resort(state)


def _at_home(state: RaceState, number: int, now_s: float) -> AtHome:
    """May this failed attempt be replaced where it failed? At once if it failed late, or if no client above would try again
    because it has got a 2xx; else the spacing of the tries is what saves a call from a short outage."""
    entrant = state.entrants[number]
    failure = entrant.failure
    late = now_s - entrant.started_s > FAST_S
    if late or failure is None or failure.in_answer or failure.kind is FailureKind.TIMEOUT:
        return AtHome.NOW
    return AtHome.NEVER if _repeated_above(state) and not state.live else AtHome.LATER


def _repeated_above(state: RaceState) -> bool:
    """Would the client above send the request again, if it got now what it gets when all have failed?"""
    repeats, failure = state.rules.retried_above, _speaks_for_all(state).failure
    return repeats is not None and failure is not None and repeats.after(failure)


def _speaks_for_all(state: RaceState) -> Entrant:
    """Whose failure the caller gets when all have failed."""
    primary = state.entrants[0]
    return primary if primary.fate is Fate.FAILED else state.entrants[-1]


def _last_resort(state: RaceState) -> Step:
    """Nothing is live and nothing may start: the kept answer if there is one, else a failure; at once. Where the primary's
    answer is one that the server broke off, or the kept one may be anything, the bare client's answer is the better one."""
    primary = state.entrants[0]
    of_bare = primary.failure if primary.fate is Fate.FAILED else None
    kept = min((e for e in state.entrants if e.fate is Fate.KEPT), key=lambda e: e.failure is not None, default=None)
    worse = of_bare is not None and (of_bare.given_up or (of_bare.in_answer and kept is not None and kept.failure))
    if kept is not None and not worse:
        return _commit(state, kept.number, state.began_s, complete=True)
    chosen = _speaks_for_all(state).number
    state, actions = _finish(state, "failed")
    return state, [s.GiveUp(chosen), *actions]


def _over(state: RaceState, outcome: str, fate: Fate) -> Step:
    """End it from outside: cancel whatever runs, the committed stream included."""
    running = [entrant.number for entrant in state.entrants if entrant.fate in (Fate.LIVE, Fate.WON)]
    for number in running:
        state = _with_fate(state, number, fate)
    state, actions = _finish(state, outcome)
    return state, [*map(s.Cancel, running), *actions]


def _finish(state: RaceState, outcome: str) -> Step:
    return state._replace(stage=Stage.OVER, wants=None, retry_at_s=None, retry_of=None), [NO_WAKE, s.Finish(outcome)]


def _wake(state: RaceState, now_s: float, view: s.View) -> s.Wake:
    """The next moment at which something may have to be done."""
    rules, soonest_s = state.rules, inf
    if rules.timeout_s is not None:
        soonest_s = state.began_s + rules.timeout_s
    if rules.stall_s is not None:
        for seen in view.progress:
            if (
                seen.first_token_s is not None
                and seen.last_chunk_s is not None
                and not seen.ended
                and seen.last_chunk_s + rules.stall_s > now_s
            ):
                soonest_s = min(soonest_s, seen.last_chunk_s + rules.stall_s)
    if state.stage is Stage.RACING:
        if state.retry_at_s is not None:
            soonest_s = min(soonest_s, state.retry_at_s)
        soonest_s = min(soonest_s, _trouble_at(state, now_s, view))
        for limit_s in (rules.attempt_timeout_s, rules.first_token_timeout_s):
            if limit_s is not None:
                ends_s = [e.started_s + limit_s for e in state.live if e.started_s + limit_s > now_s]
                soonest_s = min([soonest_s, *ends_s])
    return s.Wake(soonest_s) if soonest_s < inf else NO_WAKE


def _watch(state: RaceState, now_s: float) -> s.Wake:
    """After the commit: the deadline, and the first moment at which the stream could have stalled."""
    rules = state.rules
    moments = [state.began_s + rules.timeout_s] if rules.timeout_s is not None else []
    moments += [now_s + rules.stall_s] if rules.stall_s is not None else []
    return s.Wake(min(moments, default=None))


def _trouble_at(state: RaceState, now_s: float, view: s.View) -> float:
    """When every live attempt will be in trouble and a backup may be asked for; inf = never."""
    rules, latest_s = state.rules, -inf
    if not rules.may_trigger or rules.trigger is Trigger.OFF or state.trigger_spent or not state.room:
        return inf
    for progress in view.progress:
        entrant = state.entrants[progress.attempt]
        if entrant.fate is Fate.LIVE:
            at_s = trouble_from(rules.trigger, progress, view.outlook_at(entrant.target), now_s)
            latest_s = at_s if at_s > latest_s else latest_s
    return latest_s if latest_s > -inf else inf


def _expired(state: RaceState, progress: Progress, now_s: float) -> Failure | None:
    """The time-out of ours that this attempt has run out of; both count from its own start."""
    rules, age_s = state.rules, now_s - state.entrants[progress.attempt].started_s + SLACK_S
    if progress.ended:
        return None
    begun, heard_s = progress.first_token_s is not None, progress.last_chunk_s
    if rules.stall_s is not None and begun and heard_s is not None and now_s - heard_s + SLACK_S >= rules.stall_s:
        return Failure(kind=FailureKind.TIMEOUT, error="stall")
    if state.stage is Stage.DELIVERING:
        return None
    if rules.attempt_timeout_s is not None and age_s >= rules.attempt_timeout_s:
        return Failure(kind=FailureKind.TIMEOUT, error="attempt_timeout")
    if (
        rules.first_token_timeout_s is not None
        and progress.first_token_s is None
        and age_s >= rules.first_token_timeout_s
    ):
        return Failure(kind=FailureKind.TIMEOUT, error="first_token_timeout")
    return None


def _runs(state: RaceState, number: int) -> bool:
    return state.stage is Stage.RACING and number < len(state.entrants) and state.entrants[number].fate is Fate.LIVE


def _with_fate(state: RaceState, number: int, fate: Fate, failure: Failure | None = None) -> RaceState:
    old = state.entrants[number]
    new = Entrant(old.number, old.target, old.reason, old.started_s, fate, failure)
    entrants = (*state.entrants[:number], new, *state.entrants[number + 1 :])
    return state._replace(entrants=entrants)

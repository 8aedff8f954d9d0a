"""The promises as properties of the machine, over random interleavings of everything that can happen to a race."""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from hedgerow.budget.bucket import Bucket
from hedgerow.policy.trouble import Outlook, Progress
from hedgerow.race import signals as s
from hedgerow.race.machine import advance, start
from hedgerow.values.failure import Failure, FailureKind, Repeats
from hedgerow.values.race import CommitOn, Fate, RaceRules, Stage, Trigger

FAILURES = {kind: Failure(kind=kind, status=500, error=kind.value) for kind in FailureKind}


@st.composite
def rules(draw: st.DrawFn) -> RaceRules:
    may_rerun = draw(st.booleans())
    limit = st.none() | st.floats(0.1, 5.0)
    return RaceRules(
        commit_on=draw(st.sampled_from([CommitOn.COMPLETE, CommitOn.CONTENT])),
        trigger=draw(st.sampled_from(list(Trigger))),
        may_trigger=may_rerun and draw(st.booleans()),
        may_rerun=may_rerun,
        max_backups=draw(st.integers(0, 4)),
        resend=draw(st.booleans()),
        timeout_s=draw(limit),
        attempt_timeout_s=draw(limit),
        first_token_timeout_s=draw(limit),
        retried_above=draw(st.none() | st.builds(Repeats, statuses=st.sampled_from([None, frozenset[int]()]))),
    )


@dataclass
class World:
    """Obeys the machine and notes all that it does."""

    rules: RaceRules
    data: st.DataObject
    now_s: float = 0.0
    log: list[s.Action] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    content: dict[int, float] = field(default_factory=dict)
    wakes_at_s: float | None = None
    bucket: Bucket = field(default_factory=lambda: Bucket(0.05))

    def __post_init__(self) -> None:
        self.state = start(self.rules, 0.0)
        self.tell(s.Begin(0.0, self.outlook))

    @property
    def outlook(self) -> Outlook:
        return Outlook(limit_s=1.0)

    @property
    def view(self) -> s.View:
        live = (e.number for e in self.state.live)
        return s.View(tuple(Progress(n, 0.0, self.content.get(n)) for n in live), self.outlook)

    def tell(self, signal: s.Signal) -> None:
        queue = [signal]
        while queue:
            self.state, actions = advance(self.state, queue.pop(0))
            for action in actions:
                self.log.append(action)
                match action:
                    case s.Launch():
                        assert self.state.stage is not Stage.OVER, "an attempt started after the end"
                        self.running.add(action.attempt)
                    case s.Cancel():
                        self.running.discard(action.attempt)
                    case s.Wake():
                        self.wakes_at_s = action.at_s
                    case s.Ask():
                        queue.append(self.answer())
                    case _:
                        pass

    def answer(self) -> s.Signal:
        if self.data.draw(st.booleans(), label="granted") and self.bucket.withdraw():
            return s.Granted(self.now_s, 0, self.view)
        return s.Refused(self.now_s, self.view)

    def step(self) -> None:
        """Something happens: to a running attempt, to the clock, or to the caller."""
        choices = ["later", *(["attempt"] * 4 if self.running else []), "leave"]
        match self.data.draw(st.sampled_from(choices), label="happens"):
            case "later":
                self.now_s += self.data.draw(st.floats(0.01, 2.0), label="seconds")
                if self.wakes_at_s is not None and self.wakes_at_s <= self.now_s:
                    self.wakes_at_s = None
                    self.tell(s.Tick(self.now_s, self.view))
            case "leave":
                if self.data.draw(st.integers(0, 9), label="really") == 0:
                    self.tell(s.Left(self.now_s))
            case _:
                self.happen_to(self.data.draw(st.sampled_from(sorted(self.running)), label="attempt"))

    def happen_to(self, number: int) -> None:
        """One of the things that may happen to an attempt; several may at the same moment."""
        if self.state.stage is Stage.DELIVERING:
            self.running.discard(number)
            self.tell(s.Ended(self.now_s, self.data.draw(st.sampled_from([None, FAILURES[FailureKind.TRANSIENT]]))))
            return
        match self.data.draw(st.sampled_from(["content", "valid", "kept", "fail"]), label="what"):
            case "content":
                self.content.setdefault(number, self.now_s)
                self.tell(s.Content(self.now_s, number, self.data.draw(st.booleans(), label="readable")))
            case "fail":
                self.running.discard(number)
                self.tell(
                    s.Failed(self.now_s, number, self.data.draw(st.sampled_from(list(FAILURES.values()))), self.view)
                )
            case what:
                self.running.discard(number)
                self.tell(s.Answered(self.now_s, number, what == "valid"))

    def of(self, kind: type) -> list[s.Action]:
        return [action for action in self.log if isinstance(action, kind)]


def play(given_rules: RaceRules, data: st.DataObject) -> World:
    """A race from beginning to end; whoever still runs when the drawn steps are used up fails in turn."""
    world = World(given_rules, data)
    for _ in range(data.draw(st.integers(0, 25), label="steps")):
        world.step()
    while world.state.stage is not Stage.OVER:
        if world.state.stage is Stage.DELIVERING:
            world.tell(s.Ended(world.now_s))
            continue
        assert world.running, "the race is not over, but nothing runs: the caller would wait for ever"
        number = min(world.running)
        world.running.discard(number)
        world.tell(s.Failed(world.now_s, number, FAILURES[FailureKind.TRANSIENT], world.view))
    return world


@given(rules(), st.data())
def test_every_race_ends_and_decides_exactly_once(given_rules: RaceRules, data: st.DataObject) -> None:
    world = play(given_rules, data)
    assert len(world.of(s.Finish)) == 1
    assert len(world.of(s.Commit)) + len(world.of(s.GiveUp)) <= 1
    if world.of(s.Finish)[0].outcome in ("answered", "failed"):
        assert len(world.of(s.Commit)) + len(world.of(s.GiveUp)) == 1


@given(rules(), st.data())
def test_nothing_starts_or_is_decided_after_the_end(given_rules: RaceRules, data: st.DataObject) -> None:
    world = play(given_rules, data)
    finish = next(i for i, action in enumerate(world.log) if isinstance(action, s.Finish))
    assert not any(isinstance(action, s.Launch | s.Commit | s.GiveUp | s.Ask) for action in world.log[finish + 1 :])
    count = len(world.log)
    for late in (
        s.Left(9.0),
        s.Tick(9.0),
        s.Content(9.0, 0),
        s.Answered(9.0, 0, True),
        s.Granted(9.0, 0),
        s.Ended(9.0),
    ):
        world.tell(late)
    assert len(world.log) == count


@given(rules(), st.data())
def test_attempts_stay_within_max_backups_and_what_may_not_run_twice_does_not(
    r: RaceRules, data: st.DataObject
) -> None:
    world = play(r, data)
    assert 1 <= len(world.of(s.Launch)) <= 1 + r.max_backups
    if not r.may_rerun and not r.may_trigger:
        assert len(world.of(s.Launch)) == 1


@given(rules(), st.data())
def test_every_started_attempt_ends_and_only_the_winner_is_left_running(r: RaceRules, data: st.DataObject) -> None:
    world = play(r, data)
    assert not any(entrant.fate is Fate.LIVE for entrant in world.state.entrants)
    cancelled = Counter(action.attempt for action in world.of(s.Cancel))
    assert all(times == 1 for times in cancelled.values()), "closed twice"
    won = {action.attempt for action in world.of(s.Commit)}
    assert world.running <= won


@given(rules(), st.data())
def test_losers_are_cancelled_in_the_step_that_commits(r: RaceRules, data: st.DataObject) -> None:
    world = play(r, data)
    for i, action in enumerate(world.log):
        if isinstance(action, s.Commit):
            after = [a for a in world.log[i + 1 :] if isinstance(a, s.Cancel)]
            before = [a.attempt for a in world.log[:i] if isinstance(a, s.Launch)]
            losers = {e.number for e in world.state.entrants if e.fate is Fate.LOST} & set(before)
            gone = {a.attempt for a in world.log[:i] if isinstance(a, s.Cancel)}
            assert losers - gone <= {a.attempt for a in after}


@given(rules(), st.data())
def test_an_error_never_beats_a_live_attempt(r: RaceRules, data: st.DataObject) -> None:
    """The one exception is the primary's own request-fatal error: every copy would fail the same way."""
    world = World(r, data)
    for _ in range(data.draw(st.integers(0, 25))):
        live_before = {entrant.number for entrant in world.state.live}
        count = len(world.log)
        world.step()
        for action in world.log[count:]:
            if isinstance(action, s.GiveUp):
                fatal = world.state.entrants[0].failure
                others = live_before - {e.number for e in world.state.entrants if e.fate is Fate.FAILED}
                assert not others or (fatal is not None and fatal.kind is FailureKind.FATAL)


@given(rules(), st.data())
def test_a_backup_that_nobody_can_look_into_beats_no_live_attempt(r: RaceRules, data: st.DataObject) -> None:
    world = World(r, data)
    for _ in range(data.draw(st.integers(0, 25))):
        world.step()
        backups = [number for number in world.running if number]
        if world.state.stage is not Stage.RACING or not backups:
            continue
        others = len(world.state.live) > 1
        world.tell(s.Content(world.now_s, data.draw(st.sampled_from(sorted(backups))), readable=False))
        assert not others or not world.of(s.Commit)


@given(rules(), st.data())
def test_when_the_caller_leaves_everything_is_cancelled(r: RaceRules, data: st.DataObject) -> None:
    world = World(r, data)
    for _ in range(data.draw(st.integers(0, 10))):
        world.step()
    world.tell(s.Left(world.now_s))
    assert world.state.stage is Stage.OVER
    assert not world.running


@given(rules(), st.data())
def test_the_deadline_ends_the_race_whatever_runs(r: RaceRules, data: st.DataObject) -> None:
    world = World(r, data)
    for _ in range(data.draw(st.integers(0, 10))):
        world.step()
    was_over = world.state.stage is Stage.OVER
    world.tell(s.Tick(1e9, world.view))
    if r.timeout_s is not None and not was_over:
        assert world.of(s.Finish)[0].outcome == "deadline"
        assert not world.running


@given(st.floats(0.0, 1.0), st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 50)), max_size=400))
def test_losing_backups_never_exceed_two_plus_the_budget(share: float, requests: list[tuple[bool, bool, int]]) -> None:
    """Whoever asks for as many backups as they like, and whichever of them win."""
    bucket = Bucket(share)
    for wants, wins, in_flight in requests:
        bucket.deposit(in_flight)
        if wants and bucket.withdraw() and wins:
            bucket.refund(in_flight)
        assert bucket.losing <= 2 + share * bucket.requests + 1e-6

"""What the rule promises whatever the provider does, over adversarial latencies, failures and callers leaving.

Racing is simulated here, not timed: each request is begun, perhaps asks for backups, and is decided, in an order drawn by
hypothesis; the Pilot in the middle is the one that flies live.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.policy.gate import Place
from hedgerow.policy.pilot import Answer, Flight, Pilot
from hedgerow.policy.snapshot import remember, snapshot_of
from hedgerow.settings import Policy
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.race import Ask, Entrant, Fate, RaceState
from hedgerow.values.request import RequestFacts

COLD = 20
FAILED = Failure(kind=FailureKind.OVERLOADED, status=503, error="503")
ENDS = ("primary wins", "backup wins", "all fail", "caller leaves", "backup is cut")

# (seconds until the next thing happens, first-token time, how many backups are wanted, how it ends)
Steps = list[tuple[float, float, int, str]]
steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.01, 1.0, 40.0, 4000.0]),
        st.sampled_from([0.001, 0.5, 0.6, 3.0, 500.0]),
        st.sampled_from([0, 0, 1, 1, 2]),
        st.sampled_from(ENDS),
    ),
    min_size=1,
    max_size=300,
)


@dataclass
class World:
    """Flies a Pilot; `sent` are the numbers of the request at each backup."""

    budget: float
    pilot: Pilot = field(init=False)
    saved: dict[str, Any] = field(init=False)
    now_s: float = 0.0
    begun: int = 0
    sent: list[int] = field(default_factory=list)
    lost: int = 0
    open: list[tuple[Flight, RaceState]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pilot = self.fresh()
        self.save()

    def fresh(self) -> Pilot:
        return Pilot(Policy(budget=self.budget), (Place(name="home"),))

    def warm_up(self) -> None:
        for _ in range(COLD + 1):
            self.step(1.0, 0.5, 0, "primary wins")

    def step(self, wait_s: float, first_s: float, wanted: int, end: str, *, delay: int = 0) -> None:
        """One request: begun, backed up as far as is allowed, and (unless `delay` keeps it open) ended."""
        self.now_s += wait_s
        flight = self.pilot.prepare(RequestFacts(dialect="d", stream=True, answer_known=True), now_s=self.now_s)
        self.pilot.began(flight)
        self.begun += 1
        state = RaceState(flight.plan.rules, self.now_s, entrants=(Entrant(0, 0, "primary", self.now_s),))
        for _ in range(wanted if flight.plan.rules.may_trigger else 0):
            permit = self.pilot.ask(flight, Ask("lag"), state.entrants, self.now_s)
            if permit.target is None:
                break
            self.sent.append(self.begun)
            entrant = Entrant(len(state.entrants), permit.target, "lag", self.now_s)
            state = RaceState(state.rules, state.began_s, entrants=(*state.entrants, entrant))
        self.open.append((flight, state))
        if len(self.open) > delay:
            self.end(*self.open.pop(0), first_s, end)

    def end(self, flight: Flight, state: RaceState, first_s: float, end: str) -> None:
        entrants = state.entrants
        winner = (len(entrants) - 1 if end in ("backup wins", "backup is cut") else 0) if end != "all fail" else None
        fates = tuple(
            Entrant(
                e.number, e.target, e.reason, e.started_s, self.fate(e, winner, end), FAILED if winner is None else None
            )
            for e in entrants
        )
        state = RaceState(state.rules, state.began_s, entrants=fates)
        if end == "all fail":
            for entrant in fates:
                self.pilot.failed(flight, entrant, FAILED, self.now_s)
        answered = end in ("primary wins", "backup wins")
        self.lost += len(entrants) - 1 - (answered and bool(winner))
        told = None if end in ("all fail", "caller leaves") else first_s
        self.pilot.decided(flight, state, first_s=told, caller_s=told, now_s=self.now_s)
        if answered:
            answer = Answer(
                output_tokens=40.0, pace_s=first_s / 10, gap_s=0.01, billed_losers=(0,) * (len(entrants) - 1)
            )
            self.pilot.answered(flight, answer, caller_s=first_s, now_s=self.now_s)
        self.pilot.over(flight, state, answered=answered)

    def fate(self, entrant: Entrant, winner: int | None, end: str) -> Fate:
        if winner is None:
            return Fate.FAILED
        if end == "caller leaves":
            return Fate.CALLER_LEFT
        return Fate.WON if entrant.number == winner else Fate.LOST

    def save(self) -> None:
        """As a process does now and then while it lives."""
        self.saved = snapshot_of(self.pilot, self.now_s, clean=False)

    def restart(self, *, clean: bool) -> None:
        """The process ends, with what is open abandoned, and another goes on: with all that was known if the end was clean, else
        with what was saved some time before."""
        snapshot = snapshot_of(self.pilot, self.now_s, clean=True) if clean else self.saved
        for _, state in self.open:
            self.lost += len(state.entrants) - 1
        self.open.clear()
        self.pilot = self.fresh()
        remember(self.pilot, snapshot, self.now_s)

    def check(self) -> None:
        pending = sum(len(state.entrants) - 1 for _, state in self.open)
        assert self.lost + pending <= 2 + self.budget * self.begun + 1e-6
        controller = self.pilot.controller
        assert 1 <= controller.inflation <= 50
        assert 0 <= controller.win_rate <= 1
        for _, known in self.pilot.statistics:
            if controller.d_per_b is not None and known.b_s > 0:
                d_s = controller.delay_s(known.b_s)
                assert min(0.1 * known.b_s, 60.0) - 1e-9 <= d_s <= 60.0 + 1e-9


@given(st.sampled_from([0.01, 0.05, 0.1, 0.5, 1.0]), steps, st.integers(0, 30))
def test_losing_backups_never_exceed_two_plus_the_budget(budget: float, drawn: Steps, delay: int) -> None:
    world = World(budget)
    world.warm_up()
    for wait_s, first_s, wanted, end in drawn:
        world.step(wait_s, first_s, wanted, end, delay=delay)
        world.check()


@given(steps, st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=4))
def test_the_promise_holds_over_restarts_clean_or_not(drawn: Steps, restarts: list[tuple[int, bool]]) -> None:
    world, when = World(0.05), dict(restarts)
    world.warm_up()
    for number, (wait_s, first_s, wanted, end) in enumerate(drawn):
        if number % 7 == 0:
            world.save()
        if number in when:
            world.restart(clean=when[number])
        world.step(wait_s, first_s, wanted, end, delay=3)
        world.check()


@settings(max_examples=30)
@given(steps)
def test_backups_stay_below_the_hard_limit_even_if_all_of_them_win(drawn: Steps) -> None:
    world = World(1.0)
    world.warm_up()
    for wait_s, first_s, _, _ in drawn * 3:
        world.step(wait_s, first_s, 2, "backup wins")
        recent = [number for number in world.sent if number > world.begun - 200]
        assert len(recent) <= 0.45 * min(max(world.begun, 20), 200) + 1


@given(st.lists(st.tuples(st.sampled_from([0.001, 0.5, 500.0]), st.sampled_from(ENDS)), max_size=COLD - 1))
def test_no_late_attempt_is_backed_up_while_cold(drawn: list[tuple[float, str]]) -> None:
    world = World(1.0)
    for first_s, end in drawn:
        world.step(1.0, first_s, 2, end)
    assert not world.sent


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_a_process_that_keeps_crashing_does_not_get_its_first_backups_again(quiet: list[int]) -> None:
    world = World(0.05)
    world.warm_up()
    for requests in quiet:
        world.save()
        for _ in range(requests):
            world.step(1.0, 0.5, 0, "primary wins")
        for _ in range(5):
            world.step(1.0, 0.5, 1, "primary wins")
        world.restart(clean=False)
        world.check()
    assert world.lost >= 2

"""Who may act on trouble: targets, hold-offs and the budget."""

import pytest

from hedgerow.budget.controller import Controller
from hedgerow.policy.gate import MOST_HELD, Gate, Permit, Place, Seen
from hedgerow.settings import Policy
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.race import Ask, Entrant, Fate
from hedgerow.values.request import Key, RequestFacts

HOME = Place(name="home")
SAME_ACCOUNT = Place(name="priority")
ABROAD = Place(name="abroad", account="abroad")
KEY = Key.of(RequestFacts(dialect="openai_chat", model="m"), "home")
LATE = Ask("first_token")
PRIMARY = Entrant(0, 0, "primary", 0.0)


def failed(number: int, target: int, kind: FailureKind, retry_after_s: float | None = None) -> Entrant:
    failure = Failure(kind=kind, status=500, error=kind.value, retry_after_s=retry_after_s)
    return Entrant(number, target, "primary" if number == 0 else "error", 0.0, Fate.FAILED, failure)


class GateOfOneRoute(Gate):
    """As the requests of one route see it."""

    places: tuple[Place, ...] = (HOME,)

    def asked(self, ask: Ask, entrants: tuple[Entrant, ...], key: Key, now_s: float) -> Permit:
        return self.ask(ask, entrants, Seen(places=self.places, key=key, now_s=now_s))


def gate_for(*places: Place, **settings: object) -> GateOfOneRoute:
    gate = GateOfOneRoute(Policy(**settings), Controller(0.05))  # type: ignore[arg-type]
    gate.places = (HOME, *places)
    gate.admit()
    return gate


def note(gate: GateOfOneRoute, entrant: Entrant, now_s: float = 0.0, key: Key = KEY) -> bool:
    assert entrant.failure is not None
    return gate.note_failure(gate.places[entrant.target], entrant.failure, key, now_s, backup=entrant.target > 0)


def test_a_backup_goes_to_the_first_listed_target_then_the_next_then_home() -> None:
    gate = gate_for(ABROAD, SAME_ACCOUNT, budget=1.0)
    for _ in range(20):
        gate.admit()
    used: tuple[Entrant, ...] = (PRIMARY,)
    for expected in (1, 2, 0):
        permit = gate.asked(LATE, used, KEY, 0.0)
        assert permit == Permit(expected)
        used = (*used, Entrant(len(used), expected, "first_token", 0.0))


@pytest.mark.parametrize(("asked_s", "held_s"), [(None, 30.0), (10.0, 10.0), (16 * 86_400.0, 120.0), (0.0, 0.0)])
def test_a_429_holds_its_model_off_for_retry_after_capped(asked_s: float | None, held_s: float) -> None:
    gate = gate_for()
    note(gate, failed(0, 0, FailureKind.RATE_LIMITED, asked_s))
    if held_s:
        assert gate.asked(LATE, (PRIMARY,), KEY, held_s - 0.1) == Permit(None, "rate_limited:home")
        other = Key.of(RequestFacts(dialect="openai_chat", model="other"), "home")
        assert gate.asked(LATE, (PRIMARY,), other, held_s - 0.1) == Permit(0)
    assert gate.asked(LATE, (PRIMARY,), KEY, held_s + 0.1) == Permit(0)


def test_a_rate_limited_call_may_only_go_where_other_limits_count() -> None:
    told = failed(0, 0, FailureKind.RATE_LIMITED)
    for places, expected in [((), None), ((SAME_ACCOUNT,), None), ((ABROAD,), 1), ((SAME_ACCOUNT, ABROAD), 2)]:
        gate = gate_for(*places)
        note(gate, told)
        assert gate.asked(Ask("error", failed=0), (told,), KEY, 0.0).target == expected
    gate = gate_for(ABROAD)
    abroad = failed(1, 1, FailureKind.RATE_LIMITED)
    note(gate, abroad)
    assert (
        gate.asked(Ask("error", failed=1), (PRIMARY, abroad), KEY, 0.0).refusal == "budget"
    )  # allowed at home, but the second


def test_after_a_503_one_replacement_goes_at_once_and_not_a_chain() -> None:
    gate = gate_for(budget=1.0)
    for _ in range(20):
        gate.admit()
    first = failed(0, 0, FailureKind.OVERLOADED)
    note(gate, first)
    assert gate.asked(Ask("error", failed=0), (first,), KEY, 0.0) == Permit(0)
    second = failed(1, 0, FailureKind.OVERLOADED)
    note(gate, second)
    assert gate.asked(Ask("error", failed=1), (first, second), KEY, 0.0).target is None


def test_a_replacement_prefers_another_target() -> None:
    gate = gate_for(SAME_ACCOUNT)
    first = failed(0, 0, FailureKind.OVERLOADED)
    note(gate, first)
    assert gate.asked(Ask("error", failed=0), (first,), KEY, 0.0) == Permit(1)


def test_a_backup_target_with_a_fatal_error_is_shut_out_for_its_key_and_reported_once() -> None:
    gate = gate_for(ABROAD)
    broken = failed(1, 1, FailureKind.FATAL)
    assert [note(gate, broken), note(gate, broken)] == [True, False]
    assert gate.asked(LATE, (PRIMARY,), KEY, 1.0) == Permit(0)
    other = Key.of(RequestFacts(dialect="openai_chat", model="other"), "home")
    assert gate.asked(LATE, (PRIMARY,), other, 1.0) == Permit(1)
    gate = gate_for(ABROAD)
    note(gate, broken)
    assert gate.asked(LATE, (PRIMARY,), KEY, 601.0) == Permit(1)
    assert not note(gate, failed(0, 0, FailureKind.FATAL))  # the caller's own endpoint is never shut out


def test_an_empty_bucket_refuses_and_says_so() -> None:
    gate = gate_for(budget=0.0)
    assert [gate.asked(LATE, (PRIMARY,), KEY, 0.0).refusal for _ in range(3)] == [None, None, "budget"]
    assert gate.refusals == {"budget": 1}


def test_a_second_backup_needs_half_a_bucket() -> None:
    gate = gate_for(budget=1.0)
    racing = (PRIMARY, Entrant(1, 0, "first_token", 0.0))
    assert gate.asked(LATE, racing, KEY, 0.0).refusal == "budget"
    for _ in range(3):
        gate.admit()
    assert gate.asked(LATE, racing, KEY, 0.0) == Permit(0)


def test_the_second_cap_counts_backups_sent_whether_or_not_they_win() -> None:
    gate = gate_for(budget=1.0, budget_requests=0.1)
    for _ in range(9):
        gate.admit()
    assert [gate.asked(LATE, (PRIMARY,), KEY, 0.0).refusal for _ in range(4)] == [None, None, None, "budget"]


def test_without_a_budget_there_are_no_guards() -> None:
    gate = gate_for(budget="off")
    note(gate, failed(0, 0, FailureKind.OVERLOADED))
    assert all(gate.asked(LATE, (PRIMARY,), KEY, 0.0) == Permit(0) for _ in range(100))


def test_observing_pays_one_and_gets_half_back() -> None:
    gate = gate_for(mode="observe")
    assert gate.bucket is not None
    level = gate.bucket.level
    assert gate.asked(LATE, (PRIMARY,), KEY, 0.0) == Permit(None, "observe", 0)
    assert gate.bucket.level == level - 1


def test_what_one_route_learns_of_a_place_holds_for_all_routes_of_the_policy() -> None:
    gate = gate_for(ABROAD, budget=1.0)
    note(gate, failed(1, 1, FailureKind.RATE_LIMITED))
    gate.places = (ABROAD, HOME)  # a route whose primary is where the other's backups go
    assert gate.asked(LATE, (PRIMARY,), KEY, 0.0) == Permit(1)
    gate.places = (ABROAD,)
    assert gate.asked(LATE, (PRIMARY,), KEY, 0.0) == Permit(None, "rate_limited:abroad")


def test_hold_offs_of_models_that_callers_name_are_bounded() -> None:
    gate = Gate(Policy(), Controller(0.05))
    place = Place(name="home")
    for number in range(MOST_HELD + 50):
        key = Key.of(RequestFacts(dialect="d", model=f"m{number}"), "home")
        for kind in (FailureKind.RATE_LIMITED, FailureKind.FATAL):
            gate.note_failure(place, Failure(kind=kind), key, 0.0, backup=True)
        gate.note_room(place, key, 0.1, 0.0)
    held = (gate._held_until_s, gate._scarce_until_s, gate._gated_until_s)  # pyright: ignore[reportPrivateUsage]
    assert [len(table) for table in held] == [MOST_HELD] * 3

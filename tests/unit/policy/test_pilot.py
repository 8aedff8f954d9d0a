"""What the Pilot makes of its statistics: what is normal for a request, and what its backups are charged."""

from math import exp

import pytest

from hedgerow.policy.gate import Place
from hedgerow.policy.pilot import Answer, Flight, Pilot
from hedgerow.settings import Policy
from hedgerow.values.race import Ask, Entrant, Fate, RaceState
from hedgerow.values.request import RequestFacts

PRIMARY = Entrant(0, 0, "primary", 0.0, Fate.WON)


def facts(input_tokens: int = 100) -> RequestFacts:
    return RequestFacts(dialect="d", model="m", stream=True, input_tokens_estimate=input_tokens, answer_known=True)


def pilot(**settings: object) -> Pilot:
    return Pilot(Policy(**settings), (Place(name="home"),))  # type: ignore[arg-type]


def fly(
    pilot: Pilot,
    first_s: float = 0.5,
    input_tokens: int = 100,
    *,
    output_tokens: float = 50.0,
    pace_s: float = 0.01,
    pause_s: float | None = None,
) -> None:
    """One request whose primary answers."""
    flight = pilot.prepare(facts(input_tokens))
    pilot.began(flight)
    state = RaceState(flight.plan.rules, 0.0, entrants=(PRIMARY,))
    pilot.decided(flight, state, first_s=first_s, caller_s=first_s, now_s=0.0)
    answer = Answer(output_tokens=output_tokens, pace_s=pace_s, gap_s=pace_s, pause_s=pause_s)
    pilot.answered(flight, answer, caller_s=first_s + 0.5, now_s=0.0)
    pilot.over(flight, state, answered=True)


def warmed_up(count: int = 40, **settings: object) -> Pilot:
    flown = pilot(**settings)
    for number in range(count):
        fly(flown, first_s=0.4 + 0.2 * (number % 3) / 2)  # 0.4, 0.5 and 0.6 s in turn
    return flown


def wanting(pilot: Pilot, input_tokens: int = 100) -> Flight:
    """A request whose primary is late, and that has asked for a backup."""
    flight = pilot.prepare(facts(input_tokens))
    pilot.began(flight)
    pilot.ask(flight, Ask("lag"), (Entrant(0, 0, "primary", 0.0),), 0.0)
    return flight


def test_nothing_is_late_for_the_first_twenty_requests() -> None:
    flown = pilot()
    for number in range(20):
        assert flown.prepare(facts()).plan.verdict == "cold", number
        fly(flown)
    flight = flown.prepare(facts())
    assert flight.plan.verdict == "hedge"
    assert flown.outlook(flight, 0.0).limit_s == pytest.approx(0.75)


def test_what_is_normal_are_the_medians() -> None:
    flown = warmed_up()
    outlook = flown.outlook(flown.prepare(facts()), 0.0)
    assert (outlook.b_s, outlook.tau_s) == pytest.approx((0.5, 0.01))
    assert outlook.idle_s == pytest.approx(0.15)
    assert outlook.slow_pace_s == pytest.approx(0.013)  # 1.3·τ, above the 90th percentile
    assert outlook.expected_output(10) == 50.0
    assert outlook.expected_output(80) == pytest.approx(88.0)


def test_chunks_far_apart_are_no_pause() -> None:
    flown = pilot()
    for _ in range(40):
        fly(flown, pace_s=0.2)
    assert flown.outlook(flown.prepare(facts()), 0.0).idle_s == pytest.approx(1.0)


def test_the_usual_pause_is_the_longest_of_nine_answers_of_ten() -> None:
    flown = pilot()
    for number in range(1, 41):
        fly(flown, pause_s=0.01 * number)
    assert flown.outlook(flown.prepare(facts()), 0.0).pause_s == pytest.approx(0.01 * 36.1)


def test_first_tokens_that_grow_with_the_input_are_expected_to() -> None:
    flown = pilot()
    for number in range(300):
        tokens = 100 + number % 3 * 300  # 100, 400, 700
        fly(flown, first_s=0.5 + 0.001 * tokens, input_tokens=tokens)
    quick, slow = (flown.outlook(flown.prepare(facts(tokens)), 0.0).b_s for tokens in (100, 700))
    assert (quick, slow) == pytest.approx((0.6, 1.2))


def test_equal_inputs_are_not_told_apart_by_how_long_they_took() -> None:
    flown = pilot()
    for number in range(300):
        fly(flown, first_s=0.3 + 0.01 * (number * 7 % 41), input_tokens=100 + (number % 5 > 2) * 5)
    assert flown.outlook(flown.prepare(facts(100)), 0.0).b_s == flown.outlook(flown.prepare(facts(105)), 0.0).b_s


def test_a_backup_of_a_dear_request_is_charged_more_even_if_its_own_key_is_all_dear() -> None:
    flown = pilot(budget=1.0)
    for _ in range(100):
        fly(flown, input_tokens=100)  # 100 + 4·50 = 300
        fly(flown, input_tokens=2_000)  # 2,000 + 4·50 = 2,200
    cheap, dear = wanting(flown, 100).charged, wanting(flown, 2_000).charged
    assert cheap + dear == pytest.approx(2.0, rel=0.01)
    assert dear / cheap == pytest.approx(2_200 / 300)


def test_a_loser_that_cost_nothing_gives_back_what_was_charged() -> None:
    flown = warmed_up()
    flight = wanting(flown)
    raised = flown.controller.delay_s(0.5)
    state = RaceState(flight.plan.rules, 0.0, entrants=(PRIMARY, Entrant(1, 0, "lag", 0.0, Fate.LOST)))
    flown.decided(flight, state, first_s=0.5, caller_s=None, now_s=0.0)
    flown.answered(flight, Answer(output_tokens=50.0, billed_losers=()), caller_s=None, now_s=0.0)
    assert flown.controller.delay_s(0.5) == pytest.approx(raised * exp(-0.04 * flight.charged))


def test_observe_charges_a_wish_and_returns_half_of_it() -> None:
    flown = warmed_up(mode="observe")
    bucket = flown.gate.bucket
    assert bucket is not None
    before = bucket.level
    flight = wanting(flown)
    assert flight.refusal == "observe"
    assert bucket.level == pytest.approx(before + 0.05 - 1.0)
    state = RaceState(flight.plan.rules, 0.0, entrants=(PRIMARY,))
    flown.decided(flight, state, first_s=0.5, caller_s=None, now_s=0.0)
    flown.over(flight, state, answered=True)
    assert bucket.level == pytest.approx(before + 0.05 - 0.5)
    assert (flown.controller.inflation, flown.controller.win_rate) == (1.0, 0.5)


def abroad(count: int = 40, **settings: object) -> Pilot:
    """Warmed up at home, with a backup target."""
    flown = Pilot(Policy(**settings), (Place(name="home"), Place(name="abroad", account="abroad")))  # type: ignore[arg-type]
    for number in range(count):
        fly(flown, first_s=0.4 + 0.2 * (number % 3) / 2)
    return flown


def wanting_at(pilot: Pilot, price: float, *, input_tokens: int = 100) -> Flight:
    """A late request whose backup goes abroad, where all is `price` times as dear."""
    flight = pilot.prepare(facts(input_tokens))
    flight.price_at = lambda _target: (price * flight.price_in, price * flight.price_out)
    pilot.began(flight)
    permit = pilot.ask(flight, Ask("lag"), (Entrant(0, 0, "primary", 0.0),), 0.0)
    assert (permit.target, permit.meant) in ((1, 0), (None, 1))
    return flight


@pytest.mark.parametrize(("price", "charged"), [(0.25, 0.25), (1.0, 1.0), (4.0, 4.0), (40.0, 10.0)])
@pytest.mark.parametrize("mode", ["act", "observe"])
def test_a_backup_is_charged_at_its_targets_own_price_at_most_ten_requests(
    mode: str, price: float, charged: float
) -> None:
    flown = abroad(mode=mode)
    before, flight = flown.controller.delay_s(0.5), wanting_at(flown, price)
    assert flight.charged == pytest.approx(charged)
    fallen = 0.0 if flown.controller.win_rate < 0.25 else 0.05
    assert flown.controller.delay_s(0.5) == pytest.approx(before * exp(0.04 * (charged - fallen)))


def test_where_the_price_abroad_is_not_known_it_is_taken_to_be_that_at_home() -> None:
    flown = abroad()
    flight = flown.prepare(facts())
    flown.began(flight)
    assert flown.ask(flight, Ask("lag"), (Entrant(0, 0, "primary", 0.0),), 0.0).target == 1
    assert flight.charged == pytest.approx(1.0)


@pytest.mark.parametrize(("loser", "real"), [(0, 4.0), (1, 4.0)])
def test_a_race_really_costs_what_the_backups_target_charges_whoever_wins(loser: int, real: float) -> None:
    flown = abroad()
    flight = wanting_at(flown, 4.0)
    raised = flown.controller.delay_s(0.5)
    backup = Entrant(1, 1, "lag", 0.0, Fate.LOST if loser else Fate.WON)
    state = RaceState(flight.plan.rules, 0.0, entrants=(PRIMARY, backup))
    flown.decided(flight, state, first_s=0.5, caller_s=None, now_s=0.0)
    answer = Answer(output_tokens=50.0, target=1 - loser, billed_losers=(loser,))
    flown.answered(flight, answer, caller_s=None, now_s=0.0)
    assert flown.controller.delay_s(0.5) == pytest.approx(raised * exp(0.04 * (real - 4.0)))


def backup_won(flown: Pilot, first_s: float, pace_s: float = 0.05) -> None:
    """One request whose backup abroad wins."""
    flight = flown.prepare(facts())
    flown.began(flight)
    state = RaceState(flight.plan.rules, 0.0, entrants=(PRIMARY, Entrant(1, 1, "lag", 0.0, Fate.WON)))
    flown.decided(flight, state, first_s=0.5, caller_s=0.5, now_s=0.0)
    flown.backed_up(flight, 1, first_s=first_s, age_s=first_s + 1.0, won=True, now_s=0.0)
    answer = Answer(output_tokens=50.0, pace_s=pace_s, gap_s=pace_s, target=1, billed_losers=(0,))
    flown.answered(flight, answer, caller_s=first_s + 1.0, now_s=0.0)
    flown.over(flight, state, answered=True)


def test_a_backup_abroad_is_judged_by_its_own_key_once_that_is_warm() -> None:
    flown = abroad()
    for number in range(20):
        there = flown.outlook(flown.prepare(facts()), 0.0, 1)
        assert (there.b_s, there.tau_s) == pytest.approx((0.5, 0.01)), number
        backup_won(flown, first_s=2.0)
    flight = flown.prepare(facts())
    here, there = flown.outlook(flight, 0.0), flown.outlook(flight, 0.0, 1)
    assert (here.b_s, here.tau_s) == pytest.approx((0.5, 0.01))
    assert (there.b_s, there.tau_s) == pytest.approx((2.0, 0.05))
    assert there.limit_s == pytest.approx(4 * (here.limit_s or 0.0))  # D goes with b


def test_what_a_backup_abroad_does_is_not_learnt_for_the_primary() -> None:
    flown = abroad()
    known = flown.prepare(facts()).known
    before = (list(known.paces.timed()), list(known.outputs.timed()), len(known.firsts))
    backup_won(flown, first_s=2.0)
    assert (list(known.paces.timed()), list(known.outputs.timed()), len(known.firsts)) == (*before[:2], before[2] + 1)


def test_a_backup_cut_short_counts_with_its_age_but_only_above_the_usual_time() -> None:
    flown = abroad()
    for age_s in (0.1, 0.3, 0.7, 3.0):
        flight = flown.prepare(facts())
        flown.backed_up(flight, 1, first_s=None, age_s=age_s, won=False, now_s=0.0)
    assert [value for _, value in flown.known_at(flown.prepare(facts()), 1).firsts.timed()] == [0.7, 3.0]


def test_a_target_known_to_begin_but_not_to_go_on_is_judged_by_the_primarys_pace() -> None:
    flown = abroad()
    for _ in range(20):
        flown.backed_up(flown.prepare(facts()), 1, first_s=2.0, age_s=3.0, won=False, now_s=0.0)
    there = flown.outlook(flown.prepare(facts()), 0.0, 1)
    assert (there.b_s, there.tau_s, there.slow_pace_s) == pytest.approx((2.0, 0.01, 0.013))


def test_a_target_of_the_same_name_as_home_has_no_key_of_its_own() -> None:
    flown = Pilot(Policy(), (Place(name="home"), Place(name="home", account="other key")))
    flight = flown.prepare(facts())
    flown.backed_up(flight, 1, first_s=2.0, age_s=3.0, won=False, now_s=0.0)
    assert len(flight.known.firsts) == 0


def test_the_time_of_whole_responses_abroad_is_learnt_where_that_is_the_measure() -> None:
    flown = abroad(trigger="response")
    whole = RequestFacts(dialect="d", model="m", stream=False, input_tokens_estimate=100, answer_known=True)
    for _ in range(40):
        flight = flown.prepare(whole)
        flown.decided(flight, RaceState(flight.plan.rules, 0.0), first_s=1.0, caller_s=1.0, now_s=0.0)
        flown.answered(flight, Answer(output_tokens=50.0), caller_s=1.0, now_s=0.0)
    for won, age_s in ((True, 4.0), (False, 4.0), (False, 0.5)) * 20:
        flown.backed_up(flown.prepare(whole), 1, first_s=age_s if won else None, age_s=age_s, won=won, now_s=0.0)
    flight = flown.prepare(whole)
    assert (flown.outlook(flight, 0.0).b_s, flown.outlook(flight, 0.0, 1).b_s) == pytest.approx((1.0, 4.0))

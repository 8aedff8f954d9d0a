"""The controller stays within its bounds whatever it is told, however often."""

from hypothesis import given
from hypothesis import strategies as st

from hedgerow.budget.controller import Controller

told = st.one_of(
    st.just(("request",)),
    st.tuples(st.just("backup"), st.floats(0.0, 1e6)),
    st.tuples(st.just("settle"), st.floats(0.0, 1e6), st.floats(0.0, 10.0)),
    st.tuples(st.just("answer"), st.floats(0.0, 1e6)),
    st.tuples(st.just("decided"), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans()),
)


@given(
    st.sampled_from([0.0, 0.001, 0.05, 0.5, 1.0]),
    st.lists(told, min_size=1, max_size=20),
    st.sampled_from([1, 100]),
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=3),
)
def test_d_f_w_and_u_stay_within_their_bounds(
    budget: float, steps: list[tuple[object, ...]], times: int, medians_s: list[float]
) -> None:
    controller = Controller(budget)
    controller.start(medians_s[0], 2 * medians_s[0])
    for number, step in enumerate(steps * times):
        b_s = medians_s[number % len(medians_s)]
        match step:
            case ("request",):
                controller.on_request(b_s)
            case ("backup", float(cost)):
                assert 0.0 <= controller.on_backup(cost, b_s) <= 10.0
            case ("settle", float(cost), float(charged)):
                controller.settle(cost, charged, b_s)
            case ("answer", float(cost)):
                controller.on_answer(cost)
            case ("decided", int(backups), bool(won), bool(wanted), bool(refused)):
                controller.on_decided(backups=backups, won=won and backups > 0, wanted=wanted, refused=refused)
            case _:
                raise AssertionError(step)
        # Where b is above 600 s both bounds cannot hold: the minute does.
        assert min(0.1 * b_s, 60.0) <= controller.delay_s(b_s) * (1 + 1e-9)
        assert controller.delay_s(b_s) <= 60.0
        assert 1.0 <= controller.inflation <= 50.0
        assert 0.0 <= controller.win_rate <= 1.0
        assert 0.0 <= controller.wanted_share <= 1.0


@given(st.sampled_from([0.01, 0.05, 0.2]), st.integers(1, 60))
def test_steady_spending_at_the_budget_leaves_the_delay_where_it_is(budget: float, cycles: int) -> None:
    """What a backup raises, the requests that pay for it lower again: D comes back after each."""
    controller = Controller(budget)
    controller.start(1.0, 1.5)
    before_s = controller.delay_s(1.0)
    for _ in range(cycles):
        controller.on_backup(1.0, 1.0)
        for _ in range(round(1 / budget)):
            controller.on_request(1.0)
    assert abs(controller.delay_s(1.0) / before_s - 1) < 1e-6

"""What attempts meet without a script: profiles, pairing of draws, users' profiles, and rows of real calls played back."""

import statistics
from dataclasses import replace

import pytest
from raw_client import ask, entry

from hedgerow.errors import SettingError
from hedgerow.sandbox.draws import Arrival
from hedgerow.sandbox.profile_files import PROFILE_NAMES, load_profile, parse_profile
from hedgerow.sandbox.profiles import Priority
from hedgerow.sandbox.replayed import load_calls

REQUESTS = 20_000
# p50, p95, p99 of first-token time and of the whole answer, in seconds, and the median of output tokens. The first three
# from 200,000 requests of the same model written a second time with numpy; the last from the rows themselves.
FIGURES = {
    "openai-like": ((0.581, 1.025, 3.355), (1.308, 3.125, 8.05), 60),
    "gemini-like": ((0.555, 0.790, 3.489), (1.779, 4.514, 8.26), 230),
    "search-like": ((0.702, 0.929, 1.492), (4.059, 7.278, 23.75), 300),
    "real": ((0.550, 0.704, 100.4), (1.586, 1.910, 101.5), 161),
}
# P(second copy slow | first slow), slow = slower than the share of all; from the same two sources.
DEPENDENCE = {
    "openai-like": (0.98, 0.15),
    "gemini-like": (0.98, 0.25),
    "search-like": (0.98, 0.064),
    "real": (0.99, 0.26),
}


def draws(name, *, attempts=1, seed=7):
    profile = load_profile(name)
    return [
        [profile.draw(Arrival(seed=seed, part=str(part), number=number)) for number in range(attempts)]
        for part in range(REQUESTS)
    ]


def quantiles(values):
    return [statistics.quantiles(values, n=100)[share - 1] for share in (50, 95, 99)]


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_percentiles_of_each_profile(name):
    first, total, tokens = FIGURES[name]
    drawn = [attempt for (attempt,) in draws(name)]
    # p95 of openai-like's first token lies where the density is lowest: 1 in 20 waits.
    assert quantiles([draw.first_token_s for draw in drawn]) == pytest.approx(first, rel=0.15)
    assert quantiles([draw.total_s for draw in drawn]) == pytest.approx(total, rel=0.12)
    assert statistics.median(draw.tokens for draw in drawn) == pytest.approx(tokens, rel=0.02)


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_two_copies_share_part_of_their_luck(name):
    share, expected = DEPENDENCE[name]
    pairs = [(first.total_s, second.total_s) for first, second in draws(name, attempts=2)]
    slow_s = statistics.quantiles([first for first, _ in pairs], n=1000)[round(share * 1000) - 1]
    seconds = [second > slow_s for first, second in pairs if first > slow_s]
    assert sum(seconds) / len(seconds) == pytest.approx(expected, abs=0.07)


def test_some_stalls_come_as_a_gap_and_some_as_a_slow_rate():
    drawn = [attempt for (attempt,) in draws("openai-like")]
    gaps = sum(draw.stall_s > 0 for draw in drawn) / REQUESTS
    assert gaps == pytest.approx(0.7 * (0.046 + 0.026), rel=0.1)
    assert all(1 <= draw.stall_after_tokens <= draw.tokens for draw in drawn if draw.stall_s)
    assert max(draw.token_s for draw in drawn) > 10 * statistics.median(draw.token_s for draw in drawn)


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_draw_depends_on_seed_part_and_number_only(name):
    profile = load_profile(name)
    arrivals = [Arrival(seed=seed, part=part, number=number) for seed in (1, 2) for part in "ab" for number in (0, 1)]
    drawn = [profile.draw(arrival) for arrival in arrivals]
    assert [load_profile(name).draw(arrival) for arrival in reversed(arrivals)] == drawn[::-1]
    assert len({draw for draw, arrival in zip(drawn, arrivals, strict=True) if arrival.number == 0}) == 4
    assert len(set(drawn)) > 4


def test_arms_are_paired_by_the_last_part_of_the_case(hedgerow_sandbox_factory):
    sandbox = hedgerow_sandbox_factory(profile="openai-like", time_scale=0.001)
    ask(sandbox)
    said = {case: [ask(sandbox, case=case).json["choices"] for _ in range(2)] for case in ("single/17", "hedged/x/17")}
    assert said["single/17"] == said["hedged/x/17"]
    assert said["single/17"][0] != said["single/17"][1]
    assert ask(sandbox, case="single/18").json["choices"] != said["single/17"][0]


def test_without_a_case_the_running_number_is_the_part(hedgerow_sandbox_factory):
    sandbox = hedgerow_sandbox_factory(profile="openai-like", time_scale=0.001)
    first = [ask(sandbox).json["choices"] for _ in range(3)]
    sandbox.reset()
    assert [ask(sandbox).json["choices"] for _ in range(3)] == first
    assert first[0] != first[1]


FEW = 3_000
HANGS_FROM_S = {"openai-like": 5, "gemini-like": 10, "search-like": 20, "real": 50}


def test_without_a_priority_table_the_tier_changes_nothing():
    profile = parse_profile(OWN, name="mine", where="mine.toml")
    assert profile.priority == Priority(trouble_ratio=1, speed_ratio=1)
    assert profile.at_priority() == profile


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_priority_call_has_the_luck_of_the_standard_one_and_is_never_slower(name):
    pairs = tier_pairs(load_profile(name), requests=FEW)
    assert all(eased.tokens == plain.tokens for plain, eased in pairs)
    assert all(eased.total_s <= 0.9 * plain.total_s * 1.000001 for plain, eased in pairs)
    assert any(eased.total_s < 0.5 * plain.total_s for plain, eased in pairs)
    assert statistics.median(eased.total_s / plain.total_s for plain, eased in pairs) == pytest.approx(0.9, rel=0.02)


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_of_the_long_hangs_a_priority_call_meets_the_share_the_profile_says(name):
    from_s = HANGS_FROM_S[name]
    pairs = tier_pairs(with_priority(load_profile(name), trouble_ratio=0.5, speed_ratio=1))
    plain, eased = (sum(draw.total_s > from_s for draw in draws) for draws in zip(*pairs, strict=True))
    assert plain > 100
    assert eased / plain == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_with_a_trouble_ratio_of_0_a_priority_call_never_hangs(name):
    sparing = with_priority(load_profile(name), trouble_ratio=0, speed_ratio=1)
    eased = [draw for _, draw in tier_pairs(sparing, requests=FEW)]
    # Without trouble the slowest is a long answer.
    assert max(draw.first_token_s for draw in eased) < 2.2 * statistics.median(draw.first_token_s for draw in eased)
    assert all(draw.stall_s == 0 for draw in eased)


def test_measured_times_without_trouble_only_become_faster():
    text = """
shared_luck_share = 0.5
first_token_s = { quantiles = [[0, 1.0], [0.5, 1.5], [1, 1.5]] }
token_s = { quantiles = [[0, 0.01], [1, 0.01]] }
output_tokens = { quantiles = [[0, 10], [1, 20]] }
priority = { trouble_ratio = 0.2, speed_ratio = 0.5 }
prices = { input_usd_per_million = 1, output_usd_per_million = 2 }
"""
    for plain, eased in tier_pairs(parse_profile(text, name="mine", where="mine.toml"), requests=100):
        assert (eased.first_token_s, eased.token_s) == pytest.approx((plain.first_token_s / 2, plain.token_s / 2))


def test_only_unscripted_requests_that_ask_for_priority_are_eased(tmp_path, hedgerow_sandbox_factory):
    path = tmp_path / "mine.toml"
    path.write_text(OWN + "[priority]\nspeed_ratio = 100")
    sandbox = hedgerow_sandbox_factory(profile=str(path), time_scale=0.001)
    tiers = {"none": {}, "flex": {"service_tier": "flex"}, "priority": {"service_tier": "priority"}}
    for case, asked in tiers.items():
        ask(sandbox, case=case, **asked)
    ask(sandbox, case="scripted", script=[{"tokens": 20}], service_tier="priority")
    took_s = {
        case: ended["ended_s"] - ended["arrived_s"] for case in (*tiers, "scripted") for ended in [entry(sandbox, case)]
    }
    # 0.7 s at the standard tier; the sandbox is never early.
    assert took_s["priority"] >= 69
    assert entry(sandbox, "priority")["service_tier"] == "priority"
    assert all(took_s[case] < took_s["priority"] for case in ("none", "flex", "scripted"))


def tier_pairs(profile, *, requests=REQUESTS):
    """The draws of the same requests at the standard tier and at priority."""
    arrivals = [Arrival(seed=7, part=str(part), number=0) for part in range(requests)]
    eased = profile.at_priority()
    return [(profile.draw(arrival), eased.draw(arrival)) for arrival in arrivals]


def with_priority(profile, **ratios):
    return replace(profile, priority=Priority(**ratios))


def test_max_tokens_caps_a_drawn_length(hedgerow_sandbox):
    choice = ask(hedgerow_sandbox, max_tokens=3, case="c").json["choices"][0]
    assert choice["finish_reason"] == "length"
    assert entry(hedgerow_sandbox, "c")["tokens"] == 3


OWN = """
first_token_s = 0.5
stall_max_s = 10
output_median_tokens = 20
token_s = 0.01
[prices]
input_usd_per_million = 1
output_usd_per_million = 2
"""


def test_a_users_own_profile(tmp_path, hedgerow_sandbox_factory):
    path = tmp_path / "mine.toml"
    path.write_text(OWN)
    sandbox = hedgerow_sandbox_factory(profile=str(path), time_scale=0.001)
    ask(sandbox, case="c")
    ended = entry(sandbox, "c")
    assert ended["tokens"] == 20
    assert ended["billed_usd"] == pytest.approx((ended["input_tokens"] + 40) / 1e6)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (OWN + "\nmore = 1", "prices.more"),
        ("surprise = 1\n" + OWN, "surprise"),
        (OWN.replace("token_s = 0.01", 'token_s = "fast"'), "token_s"),
        (OWN.replace("token_s = 0.01", ""), "token_s"),
        (OWN.partition("[prices]")[0], "prices"),
        ("wait = { chance = 2, scale_s = 1, alpha = 1 }" + OWN, "wait.chance"),
        ("wait = { chance = 0.1, scale_s = 11, alpha = 1 }" + OWN, "wait.scale_s"),
        ("wait = 5" + OWN, "wait"),
        (
            "[first_token_s]\nquantiles = [[0, 1], [0.5, 0.5], [1, 2]]\n[prices]\n" + OWN.partition("[prices]\n")[2],
            "quantiles",
        ),
        (OWN + "[priority]\ntrouble_ratio = 1.5", "priority.trouble_ratio"),
        (OWN + "[priority]\nspeed_ratio = 0", "priority.speed_ratio"),
        (OWN + "[priority]\nprice_ratio = 2", "priority.price_ratio"),
        ("= broken", "valid TOML"),
    ],
)
def test_a_profile_that_cannot_be_is_refused_by_file_and_key(text, named):
    with pytest.raises(SettingError, match=named) as caught:
        parse_profile(text, name="mine", where="mine.toml")
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize("name", ["nonesuch", "nonesuch.toml"])
def test_a_profile_that_is_not_there(name):
    with pytest.raises(SettingError, match="openai-like"):
        load_profile(name)


HEAD = "source,provider,model,t_start,ttft_s,total_s,input_tokens,output_tokens,status\n"
TIMED = """s,a,m,100,0.1,1.1,5,11,ok
s,b,m,101,0.2,1.2,5,11,ok
s,a,m,130,0.3,1.3,5,11,ok
s,a,m,104,0.4,1.4,5,11,ok
s,a,m,97,0.5,1.5,5,11,ok
"""


def calls(tmp_path, rows):
    path = tmp_path / "calls.csv"
    path.write_text(HEAD + rows)
    return load_calls(path)


def rows_of(played, part, count):
    return [played.row_of(Arrival(seed=1, part=str(part), number=number)) for number in range(count)]


def test_rows_are_taken_in_order_and_start_again(tmp_path):
    played = calls(tmp_path, TIMED)
    assert [rows_of(played, part, 1)[0] for part in range(7)] == [0, 1, 2, 3, 4, 0, 1]
    assert rows_of(played, "#3", 1) == [3]
    assert rows_of(played, "a-name", 1) == rows_of(played, "a-name", 1)
    assert rows_of(played, "9" * 5000, 1)[0] in range(5)


def test_later_arrivals_take_neighbours_in_time_of_the_same_model(tmp_path):
    played = calls(tmp_path, TIMED)
    assert rows_of(played, 0, 5) == [0, 4, 3, 2, 0]
    assert rows_of(played, 1, 2) == [1, 1]


def test_without_times_neighbours_are_taken_by_position(tmp_path):
    played = calls(tmp_path, TIMED.replace(",130,", ",,"))
    assert rows_of(played, 3, 4) == [3, 2, 4, 0]


def test_a_row_becomes_a_draw(tmp_path):
    draw = calls(tmp_path, TIMED).draw(Arrival(seed=1, part="2", number=0))
    assert (draw.first_token_s, draw.tokens, draw.status) == (0.3, 11, 200)
    assert draw.total_s == pytest.approx(1.3)


def test_what_a_row_lacks_is_estimated(tmp_path):
    played = calls(tmp_path, "s,a,m,,,6.0,5,51,ok\ns,a,m,,1.0,,5,,ok\ns,b,m,,1.0,2.0,5,,ok\n")
    no_first, no_total, no_tokens = (played.draw(Arrival(seed=1, part=str(row), number=0)) for row in range(3))
    assert no_first.total_s == pytest.approx(6.0)
    assert no_first.first_token_s == pytest.approx(3.0)
    assert no_total.tokens == 51
    assert no_total.total_s == pytest.approx(2.0)
    assert no_tokens.tokens == 60


@pytest.mark.parametrize(
    ("status", "answered"), [("error_429", 429), ("error_503", 503), ("error_-1", 500), ("error", 500)]
)
def test_rows_that_failed_answer_with_an_error(tmp_path, hedgerow_sandbox_factory, status, answered):
    path = tmp_path / "calls.csv"
    path.write_text(f"{HEAD}s,a,m,,,0.1,5,,{status}\n")
    sandbox = hedgerow_sandbox_factory(replay=str(path))
    assert ask(sandbox, case="0").status == answered


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("provider,model\n", "columns"),
        (HEAD, "at least one row"),
        (HEAD + "s,a,m,,soon,1,5,5,ok\n", r"calls\.csv:2.*ttft_s"),
        (HEAD + "s,a,m,,1,1,5,5,ok\ns,a,m,,,,5,5,ok\n", r"calls\.csv:3.*ttft_s"),
    ],
)
def test_a_file_of_calls_that_cannot_be_is_refused_by_line(tmp_path, text, named):
    path = tmp_path / "calls.csv"
    path.write_text(text)
    with pytest.raises(SettingError, match=named):
        load_calls(path)

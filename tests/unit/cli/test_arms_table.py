import io
from dataclasses import replace

import pytest
from rich.console import Console

from hedgerow.cli.arms_table import arms_table, priority_note, proof_line, verdict
from hedgerow.replay.bill import Cost
from hedgerow.replay.paired import Difference
from hedgerow.replay.proof import Proof
from hedgerow.replay.result import ArmResult, Backups, Comparison, CostPerCall
from hedgerow.sandbox.profile_files import load_profile
from hedgerow.sandbox.profiles import Priority
from hedgerow.statistics.quantiles import Quantiles

NOTHING = Cost()


def arm(name, *, p99, sent=40, extra=NOTHING):
    times = Quantiles(p50=1.5, p90=1.8, p95=2.0, p99=p99, p999=101.0, n=1000)
    return ArmResult(
        arm=name,
        n=1000,
        errors=0,
        first_token=times,
        full_response=times,
        backups=Backups(sent=sent, won=sent // 2),
        cost=Cost(low_usd=0.1, high_usd=0.1),
        extra=extra,
        cost_per_call=CostPerCall(mean=0.0001, p50=0.0001, p95=0.0002),
        p99_seconds_saved_per_usd=None if not extra.high_usd else 25_000.4,
    )


def comparison(*, p99=2.5, interval=(-99.2, -98.7), sent=40):
    hedged = arm("hedged", p99=p99, sent=sent, extra=Cost(low_usd=0.002, high_usd=0.0036))
    difference = Difference(arm="hedged", against="single", p99_difference_s=p99 - 100.0, interval=interval)
    proof = Proof(answers_per_request=1.0, losers_closed=1061, losers_open=0)
    return Comparison(arms=(arm("single", p99=100.0, sent=0), hedged), paired=(difference,), proof=proof)


def test_a_gain_is_said_with_its_price_and_its_interval():
    said = verdict(comparison(), "hedged", 0.1)
    assert said.startswith("hedged cut the p99 from 100.0 s to 2.50 s, 98% less, for 2.0–3.6 % of extra cost")
    assert "-99.20 to -98.70 s" in said


@pytest.mark.parametrize("interval", [(-99.0, 0.3), (-2.0, 1.0), (-3.0, -0.2)])
def test_a_gain_that_may_be_chance_or_clockwork_is_not_called_one(interval):
    assert verdict(comparison(interval=interval), "hedged", 0.1).startswith("Hedging is not shown to help here")


def test_a_loss_is_called_a_loss():
    said = verdict(comparison(p99=130.0, interval=(20.0, 40.0)), "hedged", 0.1)
    assert said.startswith("Hedging hurt here: hedged raised the p99 from 100.0 s to 130.0 s")


def test_an_arm_that_sent_no_backup_is_given_no_credit():
    assert "sent no backup in 1,000 calls" in verdict(comparison(sent=0), "hedged", 0.1)


def test_without_an_interval_nothing_is_said():
    assert verdict(comparison(interval=None), "hedged", 0.1).startswith("Nothing can be said")


def test_the_proof_is_one_line():
    said = proof_line(Proof(answers_per_request=1.0, losers_closed=1061, losers_open=2))
    assert said == "Proof, from the sandbox's own counters: 1 answers per request, 1,061 losers closed, 2 still open."


def test_the_note_on_priority_says_what_is_assumed_and_what_is_not():
    said = priority_note(load_profile("real"), replayed=False)
    assert said.startswith("* priority: latency assumed (trouble 0.5 ×, times 0.9 ×), price 1.75 ×; see ")


@pytest.mark.parametrize("replayed", [True, False])
def test_where_nothing_is_assumed_of_priority_its_latency_is_the_standard_ones(replayed):
    profile = load_profile("real")
    said = priority_note(profile if replayed else replace(profile, priority=Priority()), replayed=replayed)
    assert "latency as of the standard tier" in said


def test_undefined_values_are_dashes_and_the_table_fits_a_narrow_terminal():
    found = comparison(interval=None)
    empty = replace(found.arms[0], full_response=Quantiles.of([]), first_token=Quantiles.of([]))
    priority = arm("priority", p99=100.0, sent=0, extra=Cost(low_usd=0.075, high_usd=0.075))
    twice = arm("twice", p99=2.4, sent=1000, extra=Cost(low_usd=0.0812, high_usd=0.1012))
    text = io.StringIO()
    arms = (empty, found.arms[1], twice, found.arms[1], priority)
    Console(width=80, file=text).print(arms_table(replace(found, arms=arms), 0.1))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in lines if line.count("│") == 7}
    assert [cell.strip() for cell in rows["full response p99"]] == ["–", "2.50", "2.40", "2.50", "100.00"]
    assert [cell.strip() for cell in rows["full response p99.9"]] == ["–", *["101.00"] * 4]
    assert [cell.strip() for cell in rows["backups per call"]] == ["0.000", "0.040", "1.000", "0.040", "0.000"]
    assert [cell.strip() for cell in rows["extra cost, %"]] == ["–", "2.0–3.6", "81.2–101.2", "2.0–3.6", "75.0"]
    assert [cell.strip() for cell in rows["p99 s saved per $"]] == ["–", *["25,000"] * 4]

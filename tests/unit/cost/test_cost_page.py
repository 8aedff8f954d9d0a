"""The worked example of docs/concepts/cost.md, recomputed: every dollar on the page is what the code says."""

import re
from pathlib import Path

import pytest
from tests.unit.cost.records import bill, event, lost, won

from hedgerow.cost.billable import TURNED_AWAY, cut_of
from hedgerow.cost.bounds import Usual, loser_bounds
from hedgerow.cost.ledger import ESTIMATED, HIDDEN_REASONING
from hedgerow.cost.prices import PriceBook, PriceRule

PAGE = (Path(__file__).parents[3] / "docs" / "concepts" / "cost.md").read_text("utf-8")
RULE = PriceRule(model="round", input=0.40, cached=0.10, output=1.60)
USUAL = Usual(q90_output_tokens=800.0, token_s=0.02)

LATE = lost(0, tokens_seen=60)
BACKUP = won(1, reason="lag", input_tokens=2000, cached_tokens=1500, output_tokens=300, tokens_seen=290)


def row(title: str) -> list[str]:
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {title}"))
    return re.findall(r"\$[0-9.]+", line)


def dollars(*usd: float | None) -> list[str]:
    return [f"${each:.6f}" for each in usd if each is not None]


def test_the_example_on_the_page_is_what_the_code_says():
    got = bill(LATE, BACKUP, book=PriceBook([RULE]), usual=USUAL, max_output_tokens=600)
    cut = cut_of(LATE, event(LATE, BACKUP, max_output_tokens=600))
    loser = loser_bounds(RULE.price, cut, USUAL, winner_tokens=300)
    assert row("winner, measured") == dollars(got.winner.low_usd)
    assert row("loser, low") == dollars(loser.low_usd)
    assert row("loser, expected") == dollars(loser.expected_usd)
    assert row("loser, high") == dollars(loser.high_usd)
    assert row("the request") == dollars(got.total.low_usd, got.total.high_usd)
    assert got.attempts[0] == loser.bounds
    assert f"`genai-prices; {ESTIMATED}`" in PAGE
    assert f"`{HIDDEN_REASONING}`" in PAGE


@pytest.mark.parametrize("line", [line for line in PAGE.splitlines() if "turned away with" in line])
def test_the_statuses_that_the_page_calls_free_are(line):
    assert {int(status) for status in re.findall(r"\b[45]\d\d\b", line)} <= TURNED_AWAY

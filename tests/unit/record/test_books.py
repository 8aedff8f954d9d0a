"""What the controller is told of prices: ratios to an input token of the primary."""

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from hedgerow.cost.ledger import TargetBilling
from hedgerow.cost.prices import PriceRule
from hedgerow.record.books import Books

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
RULES = (
    PriceRule(model="m", provider="dear.example", input=4.0, output=12.0),
    PriceRule(model="m", service_tier="priority", input=2.0, output=6.0),
    PriceRule(model="m", input=1.0, output=3.0),
    PriceRule(model="other", input=0.5, output=1.0),
    PriceRule(model="free", input=0.0, output=0.0),
)
TARGETS = {
    "home": TargetBilling(provider_url="https://home.example/v1"),
    "dear": TargetBilling(provider_url="https://dear.example/v1"),
    "priority": TargetBilling(provider_url="https://home.example/v1", service_tier="priority"),
    "other": TargetBilling(provider_url="https://home.example/v1", model="other"),
    "unknown": TargetBilling(provider_url="https://home.example/v1", model="nobody-knows-this"),
}


def books(*, ready: bool = True) -> Books:
    kept = Books(RULES, TARGETS)
    kept.ready = ready
    return kept


@pytest.mark.parametrize(
    ("target", "prices"),
    [
        ("home", (1.0, 3.0)),
        ("dear", (4.0, 12.0)),
        ("priority", (2.0, 6.0)),
        ("other", (0.5, 1.0)),
        ("unknown", (1.0, 3.0)),
        ("not listed", (1.0, 3.0)),
    ],
)
def test_each_target_has_its_own_price_where_it_is_known(target: str, prices: tuple[float, float]) -> None:
    assert books().prices_at(target, "home", "m", NOON) == pytest.approx(prices)


@pytest.mark.parametrize("model", [None, "nobody-knows-this", "free"])
def test_where_the_primarys_price_is_not_known_all_targets_cost_the_same(model: str | None) -> None:
    assert books().prices_at("dear", "home", model, NOON) == (1.0, 4.0)


def test_before_the_prices_are_loaded_all_targets_cost_the_same() -> None:
    assert books(ready=False).prices_at("dear", "home", "m", NOON) == (1.0, 4.0)


FORKS_WHILE_IT_LOADS = """
import os, signal, sys, threading
from hedgerow.record.books import Books

loading = threading.Thread(target=Books((), {}).load)
loading.start()
while "genai_prices" not in sys.modules:
    pass
child = os.fork()
if child == 0:
    signal.alarm(30)
    Books((), {}).load()
    os._exit(0)
loading.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_while_prices_load_loads_them_too() -> None:
    """It does not wait for an import that was under way in a thread that it does not have."""
    assert subprocess.run([sys.executable, "-c", FORKS_WHILE_IT_LOADS], check=False).returncode == 0

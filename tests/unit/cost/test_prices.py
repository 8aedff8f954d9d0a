"""Prices: the user's own first, then the public list with its traps, else unknown."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from genai_prices import Usage as ListUsage
from genai_prices import calc_price
from tests.unit.cost.records import NOON, OPENAI

from hedgerow.cost.prices import MOST_REMEMBERED, PriceBook, PriceRule
from hedgerow.errors import SettingError

ANTHROPIC, GEMINI = "https://api.anthropic.com", "https://generativelanguage.googleapis.com"
AZURE, DEEPSEEK = "https://mine.openai.azure.com/openai", "https://api.deepseek.com"
BEFORE_TIERS = datetime(2026, 10, 11, 23, 59, tzinfo=UTC)


def look_up(model, *, book=None, url=OPENAI, tier=None, tokens=100, at=NOON, asked_as=None):
    return (book or PriceBook()).price(
        model, provider_url=url, service_tier=tier, input_tokens=tokens, at=at, asked_as=asked_as
    )


def listed_usd(model, url, tokens, at, context=None) -> Decimal:
    usage = ListUsage(input_tokens=tokens, cache_read_tokens=tokens // 2, output_tokens=70)
    return calc_price(usage, model, provider_api_url=url, genai_request_timestamp=at, price_context=context).total_price


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("gpt-5", OPENAI),
        ("gpt-5.4", OPENAI),
        ("gpt-4o-mini-2024-07-18", OPENAI),
        ("text-embedding-3-small", OPENAI),
        ("claude-sonnet-4-6", ANTHROPIC),
        ("claude-3-5-haiku-latest", ANTHROPIC),
        ("gemini-2.5-pro", GEMINI),
        ("gemini-3.6-flash", GEMINI),
        ("gpt-4o", AZURE),
        ("deepseek-chat", DEEPSEEK),
        ("sonar-pro", "https://api.perplexity.ai"),
    ],
)
@pytest.mark.parametrize("tokens", [100, 200_000, 200_002, 272_000, 300_000])
@pytest.mark.parametrize(
    "at", [datetime(2025, 3, 1, 0, 10, tzinfo=UTC), NOON, datetime(2026, 11, 29, 16, 30, tzinfo=UTC)]
)
def test_a_listed_model_costs_what_the_list_itself_reckons(model, url, tokens, at):
    price = look_up(model, url=url, tokens=tokens, at=at)
    cached = tokens // 2
    ours = (tokens - cached) * price.input_usd + cached * price.cached_usd + 70 * price.output_usd + price.call_usd
    assert ours == pytest.approx(float(listed_usd(model, url, tokens, at)))
    assert price.source == "genai-prices"


def test_a_long_input_makes_every_token_dearer_from_one_past_the_limit_on():
    short, long = (look_up("gpt-5.4", tokens=tokens) for tokens in (272_000, 272_001))
    assert (short.input_usd, short.output_usd) == pytest.approx((2.5e-6, 15e-6))
    assert (long.input_usd, long.output_usd) == pytest.approx((5e-6, 22.5e-6))


def test_a_price_by_the_hour_changes_within_the_day():
    at = datetime(2026, 11, 29, tzinfo=UTC)
    book = PriceBook()
    by_hour = {
        minutes: look_up("deepseek-chat", book=book, url=DEEPSEEK, at=at + timedelta(minutes=minutes)).output_usd
        for minutes in (0, 29, 30, 16 * 60 + 29, 16 * 60 + 30)
    }
    assert by_hour == pytest.approx({0: 0.55e-6, 29: 0.55e-6, 30: 1.1e-6, 16 * 60 + 29: 1.1e-6, 16 * 60 + 30: 0.55e-6})


@pytest.mark.parametrize(
    ("model", "url", "tier", "context"),
    [
        ("gpt-5", OPENAI, "priority", {"service_tier": "priority"}),
        ("gpt-5", OPENAI, "flex", {"service_tier": "flex"}),
        ("gpt-5", OPENAI, "FLEX", {"service_tier": "flex"}),
        ("claude-opus-5", ANTHROPIC, "fast", {"speed": "fast"}),
        ("gemini-3.8-flash-lite-tts", GEMINI, "SERVICE_TIER_PRIORITY", {"service_tier": "priority"}),
    ],
)
def test_a_priced_tier_has_its_own_price(model, url, tier, context):
    price, standard = look_up(model, url=url, tier=tier), look_up(model, url=url)
    usd = 50 * price.input_usd + 50 * price.cached_usd + 70 * price.output_usd
    assert usd == pytest.approx(float(listed_usd(model, url, 100, NOON, context)))
    assert price != standard
    assert price.source == "genai-prices"


@pytest.mark.parametrize(
    ("model", "url", "tier", "at"),
    [
        ("gpt-5", OPENAI, "scale", NOON),
        ("gpt-5", OPENAI, "priority", BEFORE_TIERS),  # its rates begin a minute later
        ("gemini-2.5-pro", GEMINI, "flex", NOON),
        ("gpt-5", AZURE, "priority", NOON),  # Azure passes on OpenAI's models, not its tiers
    ],
)
def test_a_tier_without_a_price_says_so(model, url, tier, at):
    price, standard = look_up(model, url=url, tier=tier, at=at), look_up(model, url=url, at=at)
    assert (price.input_usd, price.output_usd) == (standard.input_usd, standard.output_usd)
    assert price.source == f"genai-prices, tier '{tier}' unpriced"


@pytest.mark.parametrize("tier", [None, "", "auto", "default", "standard", "STANDARD", "on_demand"])
def test_the_standard_tier_goes_by_many_names(tier):
    assert look_up("gpt-5", tier=tier) == look_up("gpt-5")
    assert look_up("gpt-5", tier=tier).source == "genai-prices"


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("my-model", OPENAI),
        ("gpt-5", "http://127.0.0.1:8000/v1"),  # served at home, whatever it is called
        ("gpt-5", "https://gateway.example/v1"),
        ("whisper-large-v3", "https://api.groq.com/openai/v1"),  # priced by the hour
        ("no-such-model", None),
    ],
)
def test_what_nobody_has_a_price_for_is_unknown_and_not_free(model, url):
    assert look_up(model, url=url) is None


def test_a_provider_that_is_guessed_from_the_models_name_is_said_to_be():
    price = look_up("gpt-5", url=None)
    assert price.input_usd == look_up("gpt-5").input_usd
    assert price.source == "genai-prices, provider guessed from the model's name"


def test_the_users_own_price_comes_first():
    book = PriceBook(
        [PriceRule(model="gpt-*", input=0.4, output=1.6, cached=0.1), PriceRule(model="*", input=0, output=0)]
    )
    mine = look_up("GPT-5", book=book)
    assert (mine.input_usd, mine.cached_usd, mine.output_usd) == pytest.approx((0.4e-6, 0.1e-6, 1.6e-6))
    assert mine.source == "user"
    assert look_up("llama", book=book, url=None).output_usd == 0.0


def test_without_a_price_for_cached_input_there_is_no_discount():
    assert PriceRule(model="m", input=0.4, output=1.6).price.cached_usd == pytest.approx(0.4e-6)


def test_a_rule_for_the_name_that_was_asked_for_holds_for_the_name_that_answered():
    book = PriceBook([PriceRule(model="gpt-4o", input=1, output=2)])
    assert look_up("gpt-4o-2024-08-06", book=book, asked_as="gpt-4o").source == "user"
    assert look_up("gpt-4o-2024-08-06", book=book).source == "genai-prices"
    assert look_up("deployment-7", book=book, url=AZURE, asked_as="gpt-5").source == "genai-prices, priced as 'gpt-5'"


@pytest.mark.parametrize(
    ("rule", "url", "tier", "fits"),
    [
        ({"provider": "api.openai.com"}, OPENAI, None, True),
        ({"provider": "*.openai.com"}, OPENAI, None, True),
        ({"provider": "api.anthropic.com"}, OPENAI, None, False),
        ({"provider": "localhost"}, "http://user:secret@localhost:8000/v1", None, True),
        ({"provider": "localhost:8000"}, "http://localhost:8000/v1", None, True),
        ({"provider": "localhost:8000"}, "http://localhost:8001/v1", None, False),
        ({"provider": "*"}, None, None, False),
        ({"service_tier": "priority"}, OPENAI, "priority", True),
        ({"service_tier": "priority"}, OPENAI, "default", False),
        ({"service_tier": "default"}, OPENAI, None, True),
        ({"service_tier": "default"}, OPENAI, "flex", False),
        ({}, OPENAI, "flex", True),
    ],
)
def test_a_rule_may_be_for_one_endpoint_or_tier_only(rule, url, tier, fits):
    book = PriceBook([PriceRule(model="gpt-5", input=1, output=1, **rule)])
    found = look_up("gpt-5", book=book, url=url, tier=tier)
    assert (found is not None and found.source == "user") is fits


@pytest.mark.parametrize(
    "wrong",
    [
        {"input": -1.0},
        {"output": float("nan")},
        {"cached": float("inf")},
        {"input": "0.4"},
        {"output": True},
        {"model": " "},
    ],
)
def test_an_impossible_price_is_refused_with_its_name_and_range(wrong):
    with pytest.raises(SettingError) as refused:
        PriceRule(**{"model": "m", "input": 1.0, "output": 1.0, **wrong})
    assert f"price.{next(iter(wrong))} = " in str(refused.value)


def test_a_day_is_a_day_in_utc():
    tokyo = timezone(timedelta(hours=9))
    assert look_up("gpt-5", tier="flex", at=datetime(2026, 10, 12, 8, tzinfo=tokyo)).source.endswith("unpriced")
    assert look_up("gpt-5", tier="flex", at=datetime(2026, 10, 12, 10, tzinfo=tokyo)).source == "genai-prices"
    with pytest.raises(SettingError, match="aware"):
        look_up("gpt-5", at=datetime(2026, 11, 29))


def test_what_is_remembered_has_a_limit():
    book = PriceBook([PriceRule(model="*", input=1, output=1)])
    for number in range(MOST_REMEMBERED + 100):
        assert look_up(f"model-{number}", book=book) is not None
    assert len(book._days) == MOST_REMEMBERED


def test_the_list_is_loaded_only_when_a_price_is_looked_up_in_it():
    code = """
import sys
import hedgerow, hedgerow.cost.ledger
from hedgerow.cost.prices import PriceBook, PriceRule
from datetime import UTC, datetime
book, now = PriceBook([PriceRule(model="mine", input=1, output=1)]), datetime.now(UTC)
book.price("mine", provider_url=None, service_tier=None, input_tokens=1, at=now)
assert "genai_prices" not in sys.modules
book.price("gpt-5", provider_url=None, service_tier=None, input_tokens=1, at=now)
assert "genai_prices" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)

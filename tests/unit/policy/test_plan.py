"""What is not hedged, and why; whom a policy's carve-outs and permissions concern."""

from datetime import UTC, datetime

import pytest

from hedgerow.policy.plan import Caller, Limits, Plan, make_plan
from hedgerow.settings import Policy
from hedgerow.values.race import CommitOn
from hedgerow.values.request import RequestFacts

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
CHAT = {"dialect": "openai_chat", "answer_known": True}


def plan(
    facts: dict[str, object] | None = None, caller: Caller | None = None, *, warm: bool = True, **settings: object
) -> Plan:
    policy = Policy(**settings)  # type: ignore[arg-type]
    read = RequestFacts(**CHAT | (facts or {}))  # type: ignore[arg-type]
    return make_plan(read, policy, Limits(policy), caller or Caller(at=NOON), warm=warm)


@pytest.mark.parametrize(
    ("facts", "caller", "settings", "verdict", "counted"),
    [
        ({}, Caller(), {}, "hedge", True),
        ({}, Caller(), {"mode": "observe"}, "observe", True),
        ({}, Caller(), {"trigger": "off"}, "off", True),
        ({}, Caller(), {"max_backups": 0}, "max_backups:0", False),
        ({"forbidden": ("flex",)}, Caller(), {}, "not_safe:flex", False),
        ({"needs": ("store",)}, Caller(), {}, "not_safe:store", False),
        ({"needs": ("store",)}, Caller(), {"allow": ["store"]}, "hedge", True),
        ({"needs": ("store", "n")}, Caller(), {"allow": ["store"]}, "not_safe:n", False),
        ({"forbidden": ("flex",)}, Caller(), {"allow": ["store"]}, "not_safe:flex", False),
        ({}, Caller(obstacle="body_not_replayable"), {}, "body_not_replayable", False),
        ({}, Caller(hedge=False), {}, "hedge_off", False),
        ({"tools": True}, Caller(), {"never": ["tools"]}, "never:tools", False),
        ({"stream": True}, Caller(), {"never": ["tools", "streams"]}, "never:streams", False),
        ({"effort": "high"}, Caller(), {"never": ["reasoning"]}, "never:reasoning", False),
        ({"effort": "none"}, Caller(), {"never": ["reasoning"]}, "hedge", True),
        ({"cached_context": True}, Caller(), {"never": ["cached_context"]}, "never:cached_context", False),
        ({"input_tokens_estimate": 9}, Caller(), {"max_input_tokens": 8}, "max_input_tokens", False),
        ({}, Caller(at=NOON), {"hours": ["22:00-24:00"]}, "hours", False),
        ({}, Caller(at=NOON), {"hours": ["20:00-22:00"], "time_zone": "Asia/Tokyo"}, "hedge", True),
        ({}, Caller(segment="free"), {"segments": ["pro"]}, "segment", False),
        ({}, Caller(), {"segments": ["pro"]}, "segment", False),
        ({}, Caller(segment="pro"), {"segments": ["pro"]}, "hedge", True),
        ({}, Caller(control=True), {}, "control", False),
        ({}, Caller(sdk_retry=1), {}, "sdk_retry", False),
    ],
)
def test_the_first_reason_against_hedging_is_the_verdict(
    facts: dict[str, object], caller: Caller, settings: dict[str, object], verdict: str, counted: bool
) -> None:
    found = plan(facts, caller, **settings)
    assert (found.verdict, found.counted) == (verdict, counted)
    assert found.rules.may_trigger is (verdict in ("hedge", "observe"))
    assert found.rules.may_rerun is (counted and settings.get("mode") != "observe")


def test_a_cold_request_may_be_replaced_but_not_backed_up() -> None:
    found = plan(warm=False)
    assert (found.verdict, found.counted, found.rules.may_trigger, found.rules.may_rerun) == ("cold", True, False, True)


def test_what_commits_depends_on_what_the_caller_asked() -> None:
    assert plan().rules.commit_on is CommitOn.COMPLETE
    assert plan({"stream": True}).rules.commit_on is CommitOn.CONTENT
    unread = plan({"answer_known": False, "forbidden": ("endpoint",)}, timeout_s=1.0, first_token_timeout_s=0.5)
    assert unread.rules.commit_on is CommitOn.HEADERS
    assert (unread.rules.timeout_s, unread.rules.first_token_timeout_s) == (None, None)

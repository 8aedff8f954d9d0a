"""What holds for a request before it is sent: may it be hedged, and if not, why not."""

from dataclasses import dataclass

from hedgerow.policy.trouble import Trigger
from hedgerow.race.state import CommitOn, RaceRules
from hedgerow.settings import Policy
from hedgerow.values.request import RequestFacts

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`verdict` as the event says it: "hedge", "observe", or why not ("not_safe:store", "cold"…). `counted`: it is one of
    the n requests the policy may hedge, by which the budget is measured."""

    verdict: str
    counted: bool
    rules: RaceRules


def make_plan(
    facts: RequestFacts, policy: Policy, *, warm: bool, sdk_retry: int = 0, obstacle: str | None = None
) -> Plan:
    """The plan for a request. warm: there is a delay to go by; sdk_retry: how often the SDK has tried before;
    obstacle: a reason of the caller's side why it cannot be sent twice ("body_not_replayable", "closed")."""
    unsafe = _unsafe(facts)
    refusal = obstacle or unsafe or ("max_backups:0" if not policy.hedges else None)
    if refusal is None and sdk_retry:
        refusal = "sdk_retry"  # the SDK's retries sit above us: racing each of them would multiply the attempts
    may_rerun = refusal is None and policy.mode == "act"
    counted = refusal is None
    if refusal is None and policy.trigger == "off":
        refusal = "off"
    if refusal is None and not warm:
        refusal = "cold"
    verdict = refusal or ("observe" if policy.mode == "observe" else "hedge")
    return Plan(verdict=verdict, counted=counted, rules=_rules(facts, policy, refusal is None, may_rerun))


def _unsafe(facts: RequestFacts) -> str | None:
    """Why it must not run twice; what needs a permission has none yet."""
    reasons = (*facts.forbidden, *facts.needs)
    return f"not_safe:{reasons[0]}" if reasons else None


def _rules(facts: RequestFacts, policy: Policy, may_trigger: bool, may_rerun: bool) -> RaceRules:
    """The rules of its race. A call whose answer no dialect can read (an upload, a list of models) passes through as it is,
    without any of our time-outs."""
    if not facts.answer_known:
        return RaceRules(commit_on=CommitOn.HEADERS, trigger=Trigger.OFF, may_trigger=False, may_rerun=False)
    return RaceRules(
        commit_on=CommitOn.CONTENT if facts.stream else CommitOn.COMPLETE,
        trigger=Trigger(policy.trigger),
        may_trigger=may_trigger,
        may_rerun=may_rerun,
        max_backups=policy.max_backups,
        resend=policy.on_trigger == "resend",
        timeout_s=policy.timeout_s,
        attempt_timeout_s=policy.attempt_timeout_s,
        first_token_timeout_s=policy.first_token_timeout_s,
    )

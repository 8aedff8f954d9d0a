"""What holds for a request before it is sent: may it be hedged, and if not, why not."""

from dataclasses import dataclass, replace
from datetime import datetime

from hedgerow.settings import Policy
from hedgerow.values.failure import Repeats
from hedgerow.values.race import CommitOn, RaceRules, Trigger
from hedgerow.values.request import RequestFacts

__all__ = ["Caller", "Limits", "Plan", "make_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What is known of who calls, and when. at: wall time (aware; None = hours do not apply). client_key: its name at a gateway.
    obstacle: why the caller's side cannot send it twice ("body_not_replayable", "closed"). sdk_retry: how often the SDK has tried
    before; retried_above: after which failures of this try it will again; spent: backups of the tries before (None = not known),
    elapsed_s: since the first of them. control: it was drawn for the control share."""

    at: datetime | None = None
    segment: str | None = None
    client_key: str | None = None
    deadline_s: float | None = None
    hedge: bool = True
    sdk_retry: int = 0
    retried_above: Repeats | None = None
    spent: int | None = None
    elapsed_s: float = 0.0
    obstacle: str | None = None
    control: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`verdict` as the event says it: "hedge", "observe", or why not ("not_safe:store", "cold"…). `counted`: it is one of
    the n requests the policy may hedge, by which the budget is measured."""

    verdict: str
    counted: bool
    rules: RaceRules


class Limits:
    """A policy's carve-outs and permissions, read once. Not for threads: one Pilot owns it."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._hours = policy, policy.open_hours
        self._last_asked: tuple[object, ...] | None = None
        self._last_plan: Plan | None = None

    def plan(
        self,
        facts: RequestFacts,
        refusal: str | None,
        *,
        counted: bool,
        stall_s: float | None,
        retried_above: Repeats | None,
    ) -> Plan:
        """What a refusal, or none, comes to; made anew only when it differs from the last one."""
        asked = (facts.answer_known, facts.stream, refusal, counted, stall_s, retried_above)
        if self._last_plan is None or asked != self._last_asked:
            policy = self._policy
            verdict = refusal or ("observe" if policy.mode == "observe" else "hedge")
            may = (refusal is None, counted and policy.mode == "act")
            self._last_asked = asked
            rules = _rules(facts, policy, may, stall_s, retried_above=retried_above)
            self._last_plan = Plan(verdict=verdict, counted=counted, rules=rules)
        return self._last_plan

    def why_not(self, facts: RequestFacts, caller: Caller) -> str | None:
        """The first reason why the policy may not hedge this request; None if it may."""
        policy = self._policy
        if caller.obstacle is not None:
            return caller.obstacle
        if facts.forbidden:
            return f"not_safe:{facts.forbidden[0]}"
        for need in facts.needs:
            if need not in policy.allow:
                return f"not_safe:{need}"
        if not caller.hedge:
            return "hedge_off"
        if policy.never and (kind := self._excluded(facts)):
            return f"never:{kind}"
        if policy.max_input_tokens is not None and facts.input_tokens_estimate > policy.max_input_tokens:
            return "max_input_tokens"
        if policy.hours and caller.at is not None and caller.at not in self._hours:
            return "hours"
        if policy.segments and caller.segment not in policy.segments:
            return "segment"
        if caller.control:
            return "control"
        if caller.sdk_retry and (caller.spent is None or caller.spent >= policy.max_backups):
            return "sdk_retry"  # the SDK's retries sit above us: racing each of them would multiply the attempts
        return None if policy.hedges else "max_backups:0"

    def _excluded(self, facts: RequestFacts) -> str | None:
        kinds = {
            "tools": facts.tools,
            "cached_context": facts.cached_context,
            "streams": facts.stream,
            "reasoning": facts.effort not in (None, "none"),
        }
        return next((kind for kind in self._policy.never if kinds[kind]), None)


def make_plan(
    facts: RequestFacts,
    policy: Policy,
    limits: Limits,
    caller: Caller,
    *,
    warm: bool,
    stall_s: float | None = None,
) -> Plan:
    """The plan for a request. warm: there is something to go by in telling late from usual; stall_s: how long a stream may be
    silent, None = for ever."""
    refusal = limits.why_not(facts, caller)
    counted = refusal is None
    if counted and policy.trigger == "off":
        refusal = "off"
    elif counted and not warm:
        refusal = "cold"
    plan = limits.plan(facts, refusal, counted=counted, stall_s=stall_s, retried_above=caller.retried_above)
    return replace(plan, rules=_left(plan.rules, caller)) if caller.sdk_retry else plan


def _left(rules: RaceRules, caller: Caller) -> RaceRules:
    """What earlier tries have left of them."""
    timeout_s = None if rules.timeout_s is None else max(rules.timeout_s - caller.elapsed_s, 0.0)
    return replace(rules, max_backups=max(rules.max_backups - (caller.spent or 0), 0), timeout_s=timeout_s)


def _rules(
    facts: RequestFacts, policy: Policy, may: tuple[bool, bool], stall_s: float | None, *, retried_above: Repeats | None
) -> RaceRules:
    """The rules of its race. may: trigger, rerun. A call whose answer no dialect can read (an upload, a list of models)
    passes through as it is, without any of our time-outs."""
    if not facts.answer_known:
        return RaceRules(commit_on=CommitOn.HEADERS, trigger=Trigger.OFF, may_trigger=False, may_rerun=False)
    return RaceRules(
        commit_on=CommitOn.CONTENT if facts.stream else CommitOn.COMPLETE,
        trigger=Trigger(policy.trigger),
        may_trigger=may[0],
        may_rerun=may[1],
        max_backups=policy.max_backups,
        resend=policy.on_trigger == "resend",
        timeout_s=policy.timeout_s,
        attempt_timeout_s=policy.attempt_timeout_s,
        first_token_timeout_s=policy.first_token_timeout_s,
        stall_s=stall_s,
        retried_above=retried_above,
    )

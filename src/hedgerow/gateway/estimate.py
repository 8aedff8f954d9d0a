"""What a call may cost before anybody has answered it: what a client key's day has to have left for it."""

from collections.abc import Sequence
from datetime import datetime

from hedgerow.gateway.routes import Route
from hedgerow.settings import Policy
from hedgerow.values.request import RequestFacts, WireRequest
from hedgerow.values.set_aside import SetAside

__all__ = ["costs_nothing", "most_of"]

FREE_METHODS = frozenset({"GET", "HEAD", "DELETE"})
FREE_ENDINGS = (
    "/moderations",
    "/cancel",
    "/files",
    "/uploads",
    "/parts",
    "/count_tokens",
    "/input_tokens",
    ":countTokens",
)
USUAL_LARGEST_OUTPUT = 16_384  # tokens, where a request sets no limit: what most models can say at most in one answer


def costs_nothing(wire: WireRequest) -> bool:
    """Is it one of the calls that providers do not charge for: lists, deletions, token counts, moderation, uploads?"""
    return wire.method in FREE_METHODS or wire.path.endswith(FREE_ENDINGS)


def most_of(route: Route, models: Sequence[str], facts: RequestFacts, body_bytes: int, at: datetime) -> SetAside | None:
    """The whole input and the largest output of each answer asked for, once for the call and once for each backup it may have, at
    the dearest of its targets and models. None if a price is not known: of whatever is not paid by the tokens of an answer, too
    (images, batches, fine-tuning), though the model that it names may have one."""
    if not facts.answer_known:
        return None
    input_tokens = facts.input_tokens_estimate or body_bytes // 4
    asked = facts.max_output_tokens
    output_tokens = (USUAL_LARGEST_OUTPUT if asked is None else asked) * facts.answers
    each: list[float] = []
    for target in route.targets:
        prices = [
            route.hedger.books.most_usd(target.name, model, at, input_tokens=input_tokens, output_tokens=output_tokens)
            for model in models or (None,)
        ]
        known = [usd for usd in prices if usd is not None]  # Azure's deployments have names of their own
        if not known:
            return None
        each.append(max(known))
    usd = each[0] + max(each) * _backups(route.hedger.policy, facts)
    runs_on = "background" in facts.forbidden
    return SetAside(usd=usd, attempt_usd=max(each), output_tokens=output_tokens, runs_on=runs_on)


def _backups(policy: Policy, facts: RequestFacts) -> int:
    if policy.mode != "act" or facts.forbidden or not facts.answer_known:
        return 0
    return policy.max_backups

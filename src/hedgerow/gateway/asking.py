"""What a request asks for: read within limits, admitted, understood and routed. Or refused, with the reason."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedgerow.call_context import CallContext
from hedgerow.dialects.lenient_json import MOST_VALUES, is_object, loads_or_none
from hedgerow.dialects.registry import GENERIC, dialect_for
from hedgerow.gateway.addresses import Address
from hedgerow.gateway.apis import APIS, Api, Trouble
from hedgerow.gateway.client import Client, Refused
from hedgerow.gateway.client_keys import ClientKey, presented_key
from hedgerow.gateway.door import head_of
from hedgerow.gateway.estimate import costs_nothing, most_of
from hedgerow.gateway.house import House
from hedgerow.gateway.models_asked import models_asked
from hedgerow.gateway.recognition import Recognised, recognised
from hedgerow.gateway.request_body import LARGE_BYTES, plain_body
from hedgerow.gateway.routes import Route
from hedgerow.gateway.tracing import TraceParent
from hedgerow.gateway.upstream import is_a_call
from hedgerow.record.ids import uuid7
from hedgerow.retry_ledger import NOT_AGAIN
from hedgerow.short_text import MOST_COUNTED, is_cut, name_of, quoted
from hedgerow.values.request import RequestFacts, WireRequest
from hedgerow.values.set_aside import NO_COST, SetAside

__all__ = ["Asked", "Asking"]

RETRY_COUNT = b"x-stainless-retry-count"
MOST_TOLD = 3  # models in a message
OFF = ("off", "false", "0", "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that goes on. key: the client's own, as it came; owner: whose that is, if anybody's."""

    api: Api
    address: Address
    wire: WireRequest
    facts: RequestFacts
    route: Route
    said: CallContext
    trace: TraceParent | None
    key: str | None
    owner: ClientKey | None

    @property
    def sends_events(self) -> bool:
        """Will its answer be a stream of server-sent events? Gemini's can be a JSON array as well."""
        return self.facts.stream and (self.api.name != "gemini" or "alt=sse" in self.address.query)

    @property
    def sdk_retry(self) -> int:
        """How often the SDK has tried before."""
        text = self.wire.header(RETRY_COUNT) or "0"
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    @property
    def retried_above(self) -> bool:
        """Does it come from an SDK that counts its tries, and so may try again after a failure?"""
        return self.wire.header(RETRY_COUNT) is not None


class Asking:
    """Reads one request. `api`: whose errors the client understands, as far as it is known; `id`: of the event to be."""

    def __init__(self, house: House, client: Client) -> None:
        self._house, self._client = house, client
        self.began_s, self.id = house.clock.now(), uuid7(house.clock.utc())
        self.api: Api = APIS["openai"]

    async def read(self) -> Asked:
        """Raises Refused, and Gone if the client leaves."""
        client, house = self._client, self._house
        canonical = head_of(client)
        house.origins.check(client)
        address = canonical.address
        head = WireRequest(method=canonical.method, path=address.path, headers=tuple(canonical.headers), body=None)
        found = recognised(head, client.names, key_in_query=address.key is not None)
        self.api = found.likeliest
        key = presented_key(head, client.names, address.key)
        owner = self._admitted(key, address.path)
        self.api = self._api(found, address.path)
        body = await client.body(house.config.gateway.max_body)
        if b"content-encoding" in client.names or len(body) > MOST_VALUES:  # a value takes a byte at least
            body, headers = await plain_body(body, head.headers, house.config.gateway.max_body)
            head = WireRequest(method=head.method, path=head.path, headers=tuple(headers), body=None)
        wire = head.with_body(body)
        seen = _understood(wire) if len(body) < LARGE_BYTES else await asyncio.to_thread(_understood, wire)
        facts, route = seen.facts, self._route(wire, seen.models)
        if not seen.readable and any(target.set for target in route.targets) and is_a_call(wire):
            raise Refused(Trouble(400, "this request is refused: its body is no JSON object", "unreadable_body"))
        trace = TraceParent.read(wire.header(b"traceparent"))
        said = CallContext(
            segment=None if owner is None else owner.segment_of(wire),
            deadline_s=self._deadline_s(wire),
            hedge=(wire.header(b"hedgerow-hedge") or "on").strip().lower() not in OFF,
            id=self.id,
            route=None if facts.dialect == GENERIC.name else route.name,
            client_key=None if owner is None else owner.name,
            trace_id=None if trace is None else trace.trace_id,
        )
        if owner is not None:
            said = replace(said, set_aside=self._set_aside(owner, wire, route, seen))
        return Asked(
            api=self.api,
            address=address,
            wire=wire,
            facts=facts,
            route=route,
            said=said,
            trace=trace,
            key=key,
            owner=owner,
        )

    def _api(self, found: Recognised, path: str) -> Api:
        """The API that it speaks. Raises Refused, also where no route of that API names its path."""
        if found.trouble is not None:
            raise Refused(found.trouble)
        api = found.among(self._house.routes.naming(path))
        if isinstance(api, Trouble):
            raise Refused(api)
        if api is None:
            apis = " or ".join(sorted(found.apis))
            raise Refused(
                Trouble(404, f"no [[route]] of this gateway to a target of {apis} is for {quoted(path)}", "no_route")
            )
        return api

    def _admitted(self, key: str | None, path: str) -> ClientKey | None:
        """Whose request it is; None where everybody is let in. Raises Refused."""
        keyring = self._house.keyring
        if keyring.open:
            return None
        owner = keyring.owner_of(key)
        if owner is None:
            said = "this client key is not known" if key else "a client key is needed"
            raise Refused(Trouble(401, f"{said} to the gateway", "invalid_api_key"))
        if not owner.may_use(path):
            raise Refused(Trouble(403, f"client key {owner.name} may not use {quoted(path)}", "path_not_allowed"))
        if (trouble := owner.admit()) is not None:
            wait = (b"retry-after", str(max(1, round(owner.retry_after_s))).encode())
            raise Refused(trouble, [wait, NOT_AGAIN] if trouble.code == "insufficient_quota" else [wait])
        return owner

    def _route(self, wire: WireRequest, models: Sequence[str]) -> Route:
        # A pattern cannot judge what it does not see; no provider's model has a name of that length.
        route = None if any(map(is_cut, models)) else self._house.routes.find(self.api.name, wire.path, models)
        if route is None:
            named = " and ".join(quoted(model) for model in models[:MOST_TOLD])
            what = f"model {named} at {quoted(wire.path)}" if models else quoted(wire.path)
            message = f"no [[route]] of this gateway to a target of {self.api.name} is for {what}"
            raise Refused(Trouble(404, message, "no_route"))
        return route

    def _set_aside(self, owner: ClientKey, wire: WireRequest, route: Route, seen: "_Understood") -> SetAside | None:
        """What it may cost, taken from the key's day; None where that is not counted. The last step, since whoever is refused
        after it would never give it back. Raises Refused."""
        if costs_nothing(wire):
            return NO_COST
        if not owner.has_a_limit:
            return None
        most = most_of(route, seen.models, seen.facts, len(wire.body or b""), self._house.clock.utc())
        if (trouble := owner.reserve(self.id, None if most is None else most.usd)) is not None:
            raise Refused(trouble, [(b"retry-after", b"1")] if trouble.status == 429 else ())
        unknown_usd = owner.section.unknown_cost_usd or 0.0
        return most or SetAside(usd=unknown_usd, attempt_usd=unknown_usd, output_tokens=1)

    def _deadline_s(self, wire: WireRequest) -> float | None:
        """`hedgerow-deadline-ms`. Raises Refused for what is no time."""
        text = wire.header(b"hedgerow-deadline-ms")
        if text is None:
            return None
        try:
            deadline_s = float(text) / 1000
        except ValueError:
            deadline_s = 0.0
        if not 0 < deadline_s <= MOST_COUNTED:
            message = f"hedgerow-deadline-ms = {quoted(text)} is not possible: allowed are milliseconds > 0"
            raise Refused(Trouble(400, message, "bad_header"))
        return deadline_s


@dataclass(frozen=True, slots=True)
class _Understood:
    """What a request asks, and of which models. readable: its body is a JSON object, or there is none."""

    facts: RequestFacts
    models: Sequence[str]
    readable: bool


def _understood(wire: WireRequest) -> _Understood:
    """What a route allows holds for images and speech, too, of which the dialects read nothing. Raises Refused."""
    facts = dialect_for(wire).facts(wire)
    if facts.dialect != GENERIC.name:
        return _Understood(facts, models_asked(wire, facts.model), "unreadable_body" not in facts.forbidden)
    body = loads_or_none(wire.body or b"")
    model = name_of(body.get("model")) if is_object(body) else None
    return _Understood(facts, models_asked(wire, model), is_object(body) or not wire.body)

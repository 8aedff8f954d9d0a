"""Who may call: client keys, what each may spend, and what its requests may say of themselves."""

import hmac
import re
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime, time
from fnmatch import translate
from hashlib import sha256

from hedgerow.clock import Clock
from hedgerow.gateway.apis import Trouble
from hedgerow.gateway.sections import ClientKeySection
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.short_text import name_of
from hedgerow.values.event import Event
from hedgerow.values.request import WireRequest

__all__ = ["ClientKey", "Keyring", "digest_of", "presented_key"]

KEY_HEADERS = (b"hedgerow-key", b"x-api-key", b"api-key", b"x-goog-api-key")
BEARER = "bearer "
SEGMENT_HEADER = b"hedgerow-segment"


def digest_of(key: str) -> str:
    """What the file keeps of a key: its SHA-256. Keys are random and long, so a slow hash would add nothing."""
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def presented_key(request: WireRequest, names: Set[bytes], in_query: str | None) -> str | None:
    """The key that a request brings, wherever its SDK put it; `hedgerow-key` first, for clients whose own key goes
    through. names: of its headers."""
    if not names.isdisjoint(KEY_HEADERS):
        for name in KEY_HEADERS:
            if value := request.header(name):
                return value.strip()
    authorization = request.header(b"authorization") or ""
    if authorization[: len(BEARER)].lower() == BEARER:
        return authorization[len(BEARER) :].strip()
    return in_query


class ClientKey:
    """One client's key and its counters. share: what part of its limits is this worker's. For one event loop."""

    def __init__(
        self, section: ClientKeySection, *, share: float, clock: Clock, before: "ClientKey | None" = None
    ) -> None:
        self.section, self.name = section, section.name
        self._clock = clock
        self._paths = [re.compile(translate(path)) for path in section.paths]
        self._per_minute = None if section.requests_per_minute is None else section.requests_per_minute * share
        self._usd_per_day = None if section.usd_per_day is None else section.usd_per_day * share
        self._tokens, self._filled_s = max(1.0, self._per_minute or 0.0), clock.now()
        self._day, self._spent_usd = clock.utc().date(), 0.0
        self._reserved: dict[str, float] = {}  # what calls under way may cost at most, by event
        if before is not None:
            self._reserved = before._reserved
            self._day, self._spent_usd = before._day, before._spent_usd
            self._tokens, self._filled_s = min(self._tokens, before._tokens), before._filled_s

    def may_use(self, path: str) -> bool:
        """Does its `paths` allow this one? Whether a route names it is another question."""
        return not self._paths or any(allowed.fullmatch(path) for allowed in self._paths)

    def admit(self) -> Trouble | None:
        """Count one more request, or say why it may not go on."""
        if self._usd_per_day is not None and self._spent_today() >= self._usd_per_day:
            message = f"client key {self.name} has spent its {self.section.usd_per_day:g} USD of today (UTC)"
            return Trouble(429, message, "insufficient_quota")
        if self._per_minute is None:
            return None
        now_s = self._clock.now()
        most = max(1.0, self._per_minute)
        self._tokens = min(most, self._tokens + (now_s - self._filled_s) * self._per_minute / 60.0)
        self._filled_s = now_s
        if self._tokens < 1.0:
            message = f"client key {self.name} may make {self.section.requests_per_minute} requests per minute"
            return Trouble(429, message, "rate_limit_exceeded")
        self._tokens -= 1.0
        return None

    @property
    def retry_after_s(self) -> float:
        """When its next request will be admitted."""
        if self._usd_per_day is not None and self._spent_today() >= self._usd_per_day:
            now = self._clock.utc().astimezone(UTC)
            midnight = datetime(now.year, now.month, now.day, tzinfo=UTC)
            return 86_400.0 - (now - midnight).total_seconds()
        return 0.0 if self._per_minute is None else max(0.0, (1.0 - self._tokens) * 60.0 / self._per_minute)

    @property
    def has_a_limit(self) -> bool:
        """Is its money counted?"""
        return self._usd_per_day is not None

    def reserve(self, event_id: str, usd: float | None) -> Trouble | None:
        """Set aside what a call may cost at most until that is known, or say why it may not go on. usd: None = nobody knows.

        A call alone is let in while anything is left, whatever it may cost: so a key overshoots by one call at most."""
        if self._usd_per_day is None:
            return None
        if usd is None:
            usd = self.section.unknown_cost_usd
        if usd is None:
            fix = "unknown_cost_usd of the key says what such a call counts, [[price]] what it costs"
            message = (
                f"client key {self.name} has a limit of USD per day, and the price of this call is not known: {fix}"
            )
            return Trouble(403, message, "unknown_price")
        if self._reserved and self._spent_today() + self._reserved_usd + usd > self._usd_per_day:
            message = f"what client key {self.name} may still spend today (UTC) is set aside for its calls under way"
            return Trouble(429, message, "rate_limit_exceeded")
        self._reserved[event_id] = usd
        return None

    def release(self, event_id: str) -> None:
        """A call is over, whatever became of it. Idempotent."""
        self._reserved.pop(event_id, None)

    def settle(self, event_id: str, usd: float | None) -> None:
        """What a call may have cost at most takes the place of what was set aside; None = that is still all there is to say."""
        reserved = self._reserved.pop(event_id, None)
        if usd is None and reserved is not None:
            usd = reserved
        self.spent(usd or 0.0)

    def spent(self, usd: float) -> None:
        """What one of its requests may have cost, or what those before this process did today."""
        if self._usd_per_day is not None:
            self._spent_today()
            self._spent_usd += usd

    @property
    def _reserved_usd(self) -> float:
        return sum(self._reserved.values())

    def segment_of(self, request: WireRequest) -> str | None:
        """The class of caller that a request belongs to: what it says itself, if that can be trusted, else the key's own."""
        said = request.header(SEGMENT_HEADER)
        if said is None or self.section.trust_segment == "off":
            return self.section.segment
        if self.section.trust_segment == "header":
            return name_of(said.strip()) or self.section.segment
        return name_of(self._signed(said.strip())) or self.section.segment

    def _signed(self, said: str) -> str | None:
        """`pro.<expiry>.<hmac>`: the segment, if the HMAC-SHA256 of `pro.<expiry>` is right and the expiry, in Unix seconds, is
        still to come."""
        text, _, mac = said.rpartition(".")
        segment, _, expiry = text.rpartition(".")
        secret = (self.section.segment_secret or "").encode()
        right = hmac.new(secret, text.encode("utf-8", "replace"), sha256).hexdigest()
        if (
            not segment
            or not expiry.isdecimal()
            or not hmac.compare_digest(right.encode(), mac.encode("utf-8", "replace"))
        ):
            return None
        return segment if int(expiry) > self._clock.utc().timestamp() else None

    def _spent_today(self) -> float:
        if (today := self._clock.utc().date()) > self._day:  # a clock that is set back clears nothing
            self._day, self._spent_usd = today, 0.0
        return self._spent_usd


class Keyring:
    """All client keys. Without any, everybody is let in."""

    def __init__(self, *, share: float, clock: Clock) -> None:
        self._share, self._clock = share, clock
        self._keys: Mapping[str, ClientKey] = {}  # by the SHA-256 of the key
        self._by_name: Mapping[str, ClientKey] = {}

    def renew(self, sections: Sequence[ClientKeySection]) -> None:
        """From now on these. A key that stays keeps its counts."""
        known = self._by_name
        self._keys = {
            section.sha256: ClientKey(section, share=self._share, clock=self._clock, before=known.get(section.name))
            for section in sections
        }
        self._by_name = {key.name: key for key in self._keys.values()}

    def remember(self, store: SqliteStore) -> None:
        """What the keys have spent today before this process began. It was spent by all workers together."""
        spent = store.spent_since(datetime.combine(self._clock.utc().date(), time.min, UTC))
        for key in self._keys.values():
            usd, unknown = spent.get(key.name, (0.0, 0))
            key.spent((usd + unknown * (key.section.unknown_cost_usd or 0.0)) * self._share)

    @property
    def open(self) -> bool:
        """Is there no key at all?"""
        return not self._keys

    def owner_of(self, key: str | None) -> ClientKey | None:
        """Whose key it is. Takes as long for a wrong one as for a right one."""
        digest, found = digest_of(key or ""), None
        for known, owner in self._keys.items():
            if hmac.compare_digest(known, digest):
                found = owner
        return found

    def spent(self, event: Event) -> None:
        """A request is over; its key, if it came with one, hears what it may have cost."""
        key = self._by_name.get(event.client_key or "")
        if key is not None and key.has_a_limit:
            key.settle(event.id, event.cost_high_usd if event.counted_usd is None else event.counted_usd)

"""Browsers. Which pages may call, what they are told of it (CORS, as the Fetch standard has it), and whom a gateway on the
loopback without client keys refuses: any page in the user's browser reaches it, and would spend its keys."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from hedgerow.gateway.addresses import host_name
from hedgerow.gateway.apis import Trouble
from hedgerow.gateway.client import Client, Refused
from hedgerow.gateway.config import Config, is_loopback
from hedgerow.gateway.door import METHODS
from hedgerow.gateway.headers import RequestHeaders
from hedgerow.gateway.sections import ANY_ORIGIN

__all__ = ["OF_OTHER_SITES", "Origins"]

TOKENS = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:\s*,\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*")
MOST_ASKED = 4_000  # characters of header names that a preflight may ask for
PREFLIGHT_S = 600  # how long a browser may remember its answer
SHOWN = b"*, " + b", ".join(
    (
        *(b"hedgerow-id", b"hedgerow-winner", b"hedgerow-attempts", b"hedgerow-reason"),
        *(b"request-id", b"retry-after", b"server-timing", b"x-request-id"),
    )
)
OF_BROWSERS = frozenset({b"origin", b"sec-fetch-site"})
# What sec-fetch-site says of a page of another site: it can ask, though it could not read the answer.
OF_OTHER_SITES = ("cross-site", "same-site")


class Origins:
    """What a configuration says of browsers. Immutable."""

    def __init__(self, config: Config) -> None:
        self._allowed = frozenset(config.gateway.cors_origins)
        self._only_programs = config.only_here and not config.client_keys
        self._hosts = frozenset(name.lower() for name in config.gateway.hosts)

    def preflight(self, client: Client) -> RequestHeaders | None:
        """What the answer to a preflight says, which never carries a key, beside `of`; None if it is none. Raises Refused."""
        if client.method != "OPTIONS" or not client.names >= {b"origin", b"access-control-request-method"}:
            return None
        said = _said(client.headers)
        self.check(client)
        if ANY_ORIGIN not in self._allowed and said["origin"] not in self._allowed:
            message = (
                f"pages of this origin may not call: cors_origins in [gateway] does not name {_short(said['origin'])}"
            )
            raise Refused(Trouble(403, message, "origin_not_allowed"))
        asked = said.get("access-control-request-headers", "").strip()
        allowed = asked if len(asked) <= MOST_ASKED and TOKENS.fullmatch(asked) else ""
        return [
            (b"access-control-allow-methods", ", ".join(METHODS).encode()),
            (b"access-control-allow-headers", allowed.encode()),
            (b"access-control-max-age", str(PREFLIGHT_S).encode()),
            *(
                [(b"access-control-allow-private-network", b"true")]
                if "access-control-request-private-network" in said
                else ()
            ),
        ]

    def of(self, client: Client) -> RequestHeaders:
        """What every answer to this request carries, errors as well: may the page that asks read it?"""
        if not self._allowed:
            return ()
        origin = next((value for name, value in client.headers if name == b"origin"), None)
        if ANY_ORIGIN in self._allowed:
            return [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", SHOWN)]
        if origin is None or origin.decode("latin-1") not in self._allowed:
            return [(b"vary", b"origin")]
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", SHOWN),
            (b"vary", b"origin"),
        ]

    def check(self, client: Client) -> None:
        """Raises Refused for what comes from a page that is none of ours, where nothing but the address keeps others out."""
        if not self._only_programs:
            return
        host = next((value for name, value in client.headers if name == b"host"), b"").decode("latin-1").strip()
        name = host_name(host)
        if not _is_of_this_machine(name) and name not in self._hosts:
            fix = "hosts in [gateway] names others than localhost and loopback addresses"
            raise Refused(Trouble(421, f"this gateway is not asked for as {_short(name)}: {fix}", "wrong_host"))
        if client.names.isdisjoint(OF_BROWSERS):
            return
        said = _said(client.headers)
        origin = said.get("origin")
        if origin is None and said.get("sec-fetch-site") not in OF_OTHER_SITES:
            return
        if origin in self._allowed or (origin is not None and origin.partition("://")[2].lower() == host.lower()):
            return
        fix = "cors_origins in [gateway] names those that may"
        message = f"pages of other origins may not call a gateway without client keys; {fix}"
        raise Refused(Trouble(403, message, "origin_not_allowed"))


def _said(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1").strip() for name, value in headers}


_is_of_this_machine = lru_cache(maxsize=256)(is_loopback)


def _short(text: str) -> str:
    return text[:100]

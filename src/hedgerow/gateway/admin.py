"""Who may look inside: whoever has the admin key; without one, whoever is certainly on this machine."""

import hmac

from hedgerow.gateway.client import Scope
from hedgerow.gateway.config import Config, is_loopback

__all__ = ["may_administer"]

BEARER = "bearer "
FORWARDED = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")


def may_administer(config: Config, scope: Scope) -> bool:
    """With an admin key: does the request bring it? Without: does the gateway listen on the loopback only, is it asked for by a
    loopback name (a web page's trick with DNS is not), and has nobody passed the request on?"""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    said = {name: value.decode("latin-1") for name, value in headers}
    if config.admin_key is not None:
        brought = said.get(b"authorization", "")
        key = brought[len(BEARER) :].strip() if brought[: len(BEARER)].lower() == BEARER else ""
        return hmac.compare_digest(key.encode(), config.admin_key.encode())
    host = said.get(b"host", "").rsplit(":", 1)[0].strip("[]")
    return config.only_here and is_loopback(host) and not any(name in said for name in FORWARDED)

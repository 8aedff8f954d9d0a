"""Who may look inside: whoever has the admin key; without one, where `admin` allows it, whoever is certainly on this machine."""

import hmac

from hedgerow.gateway.addresses import host_name
from hedgerow.gateway.client import Scope
from hedgerow.gateway.config import Config, is_loopback
from hedgerow.gateway.origins import OF_OTHER_SITES

__all__ = ["may_administer"]

BEARER = "bearer "
# What proxies, meshes, tunnels and CDNs add to what they pass on. With one of them in between, a loopback address says nothing.
FORWARDED = frozenset(
    {
        "akamai-origin-hop",
        "cdn-loop",
        "client-ip",
        "forwarded",
        "forwarded-for",
        "incap-client-ip",
        "true-client-ip",
        "via",
        "wl-proxy-client-ip",
        "x-cluster-client-ip",
        "x-cloud-trace-context",
        "x-coming-from",
        "x-forward-for",
        "x-forwarded",
        "x-host",
        "x-http-host-override",
        "x-originating-ip",
        "x-proxyuser-ip",
        "x-real-ip",
        "x-real-port",
        "x-request-start",
        "x-rewrite-url",
        "x-scheme",
        "x-sucuri-clientip",
        "x-true-client-ip",
        "x-varnish",
    }
)
FORWARDED_BEGIN = (
    "cf-",
    "cloudfront-",
    "fastly-",
    "fly-",
    "ngrok-",
    "proxy-",
    "tailscale-",
    "x-amz-cf-",
    "x-amzn-",
    "x-appengine-",
    "x-arr-",
    "x-azure-",
    "x-client-",
    "x-clientip",
    "x-envoy-",
    "x-forwarded-",
    "x-nf-",
    "x-original-",
    "x-proxy-",
    "x-remote-",
    "x-vercel-",
)


def may_administer(config: Config, scope: Scope) -> bool:
    """With an admin key: does the request bring it? Without: does `admin` let this machine's programs in, is it one of them that
    asks, by a loopback name (a web page's trick with DNS is not), and has nobody passed the request on?"""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    said = [(name.decode("latin-1").lower().replace("_", "-"), value.decode("latin-1")) for name, value in headers]
    if config.gateway.admin == "off":
        return False
    if config.admin_key is not None:
        brought = next((value for name, value in said if name == "authorization"), "")
        key = brought[len(BEARER) :].strip() if brought[: len(BEARER)].lower() == BEARER else ""
        return bool(key) and hmac.compare_digest(key.encode(), config.admin_key.encode())
    if config.gateway.admin == "auto" and (config.client_keys or not config.only_here):
        return False
    return _is_from_here(scope, said)


def _is_from_here(scope: Scope, said: list[tuple[str, str]]) -> bool:
    hosts = [value.strip() for name, value in said if name == "host"]
    peer: tuple[str, int] | None = scope.get("client")
    return (
        peer is not None
        and is_loopback(peer[0])
        and len(hosts) == 1
        and is_loopback(host_name(hosts[0]))
        and scope.get("http_version") != "1.0"  # nginx passes on with that, and says nothing else of itself untold
        and not any(name in FORWARDED or name.startswith(FORWARDED_BEGIN) for name, _ in said)
        and not any(name == "origin" or (name == "sec-fetch-site" and value in OF_OTHER_SITES) for name, value in said)
    )

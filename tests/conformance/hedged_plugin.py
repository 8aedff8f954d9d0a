"""A pytest plugin for the suites of other people: makes every SDK client that their tests construct a hedged one, and counts calls.

With HEDGEROW_CONFORMANCE=hedged the constructors of the SDK's clients are extended: after the SDK's own work, `hedged(client)` is
called, and the HTTP client of the copy takes the place of the client's own. So the tests hold the object they made, of the class
they made it of; only what it sends through is hedged. What hedged() refuses stays as it is, and is counted with the reason.

Writes one JSON object to the file named by HEDGEROW_CONFORMANCE_REPORT: outcome and calls of each test.
"""

import functools
import importlib
import inspect
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

import hedgerow
from hedgerow.errors import UnsupportedError

HEDGED = os.environ.get("HEDGEROW_CONFORMANCE") == "hedged"
SDK = os.environ.get("HEDGEROW_CONFORMANCE_SDK", "openai")
REPORT = os.environ.get("HEDGEROW_CONFORMANCE_REPORT", "conformance.json")
OURS = (hedgerow.Transport, hedgerow.AsyncTransport, hedgerow.HttpxTransport, hedgerow.AsyncHttpxTransport)
MOCKS = ("respx_mock", "respx2_mock", "snapshot_client", "async_snapshot_client")
OWN_TRANSPORTS = ("httpx2", "httpx", "hedgerow", "openai", "anthropic", "httpx_aiohttp")


class Counts:
    """What was seen so far. One for the process: the suites run in one."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.refused: Counter[str] = Counter()
        self.hedgers: list[Any] = []
        self.now: dict[str, Any] = {"calls": 0, "hedged": 0, "mocked": False}  # outside of any test


SEEN = Counts()


def pytest_configure(config: pytest.Config) -> None:
    for client in (httpx2.Client, httpx2.AsyncClient, httpx.Client, httpx.AsyncClient):
        _count_sends(client)
    if HEDGED:
        sdk = importlib.import_module(SDK)
        for name in ("OpenAI", "AsyncOpenAI") if SDK == "openai" else ("Anthropic", "AsyncAnthropic"):
            _hedge_what_it_makes(getattr(sdk, name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    names = getattr(item, "fixturenames", ())
    mocked = any(name in names for name in MOCKS) or "MockTransport" in _source(item)
    SEEN.now = SEEN.tests[item.nodeid] = {"outcome": "missing", "calls": 0, "hedged": 0, "mocked": mocked}
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seen = SEEN.tests[report.nodeid]
    if report.when == "call" or not report.passed:
        if seen["outcome"] not in ("failed", "error"):
            seen["outcome"] = "error" if report.failed and report.when != "call" else report.outcome
        if report.failed:
            seen["why"] = str(report.longrepr)[-1500:]


def pytest_sessionfinish() -> None:
    through = sum(hedger.stats()["requests"] for hedger in SEEN.hedgers)
    plans: Counter[str] = Counter()
    for hedger in SEEN.hedgers:
        plans.update(hedger.stats()["plans"])
    found = {"tests": SEEN.tests, "through_hedgers": through, "plans": plans, "refused": SEEN.refused}
    Path(REPORT).write_text(json.dumps(found))


def _source(item: pytest.Item) -> str:
    function = getattr(item, "function", None)
    try:
        return inspect.getsource(inspect.unwrap(function)) if function else ""
    except (OSError, TypeError):
        return ""


def _hedge_what_it_makes(kind: Any) -> None:
    made = kind.__init__
    # The copy that hedged() makes is made by the same constructor, and must not be hedged again.
    making: list[object] = []

    @functools.wraps(made)
    def constructed(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if making:
            return
        making.append(self)
        try:
            copy = hedgerow.hedged(self)
        except UnsupportedError as error:
            SEEN.refused[str(error)[:160]] += 1
        else:
            self._client = copy._client
            SEEN.hedgers.append(hedgerow.hedger_of(copy))
        finally:
            making.pop()

    kind.__init__ = constructed


def _count_sends(kind: Any) -> None:
    send = kind.send

    def counted(self: Any, request: Any) -> None:
        transport = self._transport_for_url(request.url)
        ours = isinstance(transport, OURS)
        inner = transport
        while (next_one := getattr(inner, "inner", None) or getattr(inner, "_inner", None)) is not None:
            inner = next_one
        foreign = type(inner).__module__.partition(".")[0] not in OWN_TRANSPORTS
        SEEN.now["calls"] += 1
        SEEN.now["hedged"] += ours
        SEEN.now["mocked"] = SEEN.now["mocked"] or foreign

    if inspect.iscoroutinefunction(send):

        @functools.wraps(send)
        async def sent_later(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            counted(self, request)
            return await send(self, request, *args, **kwargs)

        kind.send = sent_later
        return

    @functools.wraps(send)
    def sent(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        counted(self, request)
        return send(self, request, *args, **kwargs)

    kind.send = sent

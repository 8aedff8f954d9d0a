"""A pytest plugin for other people's suites: makes every SDK client that their tests construct a hedged one, and counts calls.

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
import sys
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
# anthropic's suite has the name httpx stand for httpx2; then there is no classic httpx.
CLASSIC = () if httpx.Client is httpx2.Client else (hedgerow.HttpxTransport, hedgerow.AsyncHttpxTransport)
OURS = (hedgerow.Transport, hedgerow.AsyncTransport, *CLASSIC)
CLIENTS = {httpx2.Client, httpx2.AsyncClient, httpx.Client, httpx.AsyncClient}
MOCKS = ("respx_mock", "respx2_mock", "snapshot_client", "async_snapshot_client")
ERRORS = {"openai": "OpenAIError", "anthropic": "AnthropicError"}
OWN_TRANSPORTS = ("httpx2", "httpx", "hedgerow", "openai", "anthropic", "httpx_aiohttp")


class Counts:
    """What was seen so far. One for the process: the suites run in one."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.refused: Counter[str] = Counter()
        self.hedgers: list[Any] = []
        self.now: dict[str, Any] = {"calls": 0, "hedged": 0, "mocked": False}  # outside of any test


SEEN = Counts()


def pytest_configure() -> None:
    for client in CLIENTS:
        _count_sends(client)
    if HEDGED:
        sdk, making = importlib.import_module(SDK), list[object]()
        for name in ("OpenAI", "AsyncOpenAI") if SDK == "openai" else ("Anthropic", "AsyncAnthropic"):
            _hedge_what_it_makes(getattr(sdk, name), making)


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


def _hedge_what_it_makes(kind: Any, making: list[object]) -> None:
    """Extends the constructor of a class, and those of its subclasses that have one: the outermost one that returns hedges, since
    only then is the client whole. `making` is common to all: the copy that hedged() makes must not be hedged itself."""
    for each in kind.__subclasses__():
        _hedge_what_it_makes(each, making)
    if "__init__" not in vars(kind):
        return
    made = kind.__init__

    @functools.wraps(made)
    def constructed(self: Any, *args: Any, **kwargs: Any) -> None:
        outermost = not making
        making.append(self)
        try:
            made(self, *args, **kwargs)
            if outermost:
                _hedge(self)
        finally:
            making.pop()

    kind.__init__ = constructed


def _hedge(client: Any) -> None:
    try:
        copy = hedgerow.hedged(client)
    except UnsupportedError as error:
        SEEN.refused[str(error)[:160]] += 1
    except (AttributeError, ValueError, sys.modules[SDK].__dict__[ERRORS[SDK]]) as error:
        # The SDK's own copy() cannot copy this client. Whoever calls hedged() sees that; here the test goes on without.
        SEEN.refused[f"{type(client).__name__}.copy(): {error}"[:160]] += 1
    else:
        client._client = copy._client
        SEEN.hedgers.append(hedgerow.hedger_of(copy))


def _count_sends(kind: Any) -> None:
    send = kind.send

    def counted(self: Any, request: Any) -> None:
        transport = self._transport_for_url(request.url)
        ours = isinstance(transport, OURS)
        inner = transport
        while (next_one := getattr(inner, "inner", None) or getattr(inner, "_inner", None)) is not None:
            inner = next_one
        module, _, _ = type(inner).__module__.partition(".")
        foreign = module not in OWN_TRANSPORTS or isinstance(inner, httpx2.MockTransport | httpx.MockTransport)
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

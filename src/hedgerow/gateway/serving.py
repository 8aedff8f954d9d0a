"""One worker: the application on uvicorn, from a listening socket to a graceful end."""

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import uvicorn

from hedgerow.gateway.app import Gateway
from hedgerow.gateway.config import Config
from hedgerow.gateway.house import Worker
from hedgerow.gateway.patience import PatientProtocol

__all__ = ["bound_socket", "serve", "server_of"]

BACKLOG = 4096
GRACE_S = 60  # for calls under way when the gateway is told to end
IDLE_S = 75  # longer than proxies in front keep a connection, so that it is they who close it
WATCH_S = 1.0
YOUNG_OBJECTS = (
    10_000  # more than at its last look, until the collector looks again; a request leaves some 60 for a while
)

log = logging.getLogger("hedgerow")


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    listening.set_inheritable(True)
    return listening


def serve(config: Config, listening: socket.socket, worker: Worker, ready: Callable[[], None]) -> None:
    """Serves until SIGTERM or SIGINT, then ends gracefully: no new calls, those under way have 60 s. ready: told once it
    listens. Raises SettingError or OSError if what the file names cannot be had."""
    logging.getLogger("uvicorn.error").addFilter(_is_news)

    def started() -> None:
        _set_aside_what_stays()
        ready()

    gateway = Gateway(config, worker)
    server_of(gateway, started).run(sockets=[listening])
    if gateway.trouble is not None:
        raise gateway.trouble


def server_of(gateway: Gateway, ready: Callable[[], None]) -> uvicorn.Server:
    """The application on uvicorn. ready: told once it listens."""
    config = uvicorn.Config(
        gateway,
        lifespan="on",
        ws="none",
        http=PatientProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=GRACE_S,
        backlog=BACKLOG,
    )
    return _Server(config, gateway, ready)


class _Server(uvicorn.Server):
    """uvicorn's, which also reloads and says when it drains."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._gateway, self._ready = gateway, ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """As uvicorn's, but a graceful end is a success: the signal is not raised once more at the end."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, AttributeError):  # Windows has no SIGHUP
            loop.add_signal_handler(signal.SIGHUP, self._reload)
        self._watching = loop.create_task(self._watch(_changed(self._gateway.config)))
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gateway.draining = True
        self._watching.cancel()
        await super().shutdown(sockets)

    def _reload(self) -> None:
        self._reloading = asyncio.get_running_loop().create_task(self._gateway.reload())

    async def _watch(self, seen: tuple[int, int] | None) -> None:
        """Reload when the file changes; end when the supervisor is gone, which nobody else would tell a worker. seen: the file as
        it was before anybody was told that the gateway listens."""
        config, parent = self._gateway.config, os.getppid()
        while True:
            await asyncio.sleep(WATCH_S)
            self.should_exit |= self._gateway.worker.of > 1 and os.getppid() != parent
            if (now := _changed(config)) not in (seen, None):
                seen = now
                await self._gateway.reload()


def _set_aside_what_stays() -> None:
    """Tell the garbage collector to leave alone what is there once all is loaded: some 130,000 objects that stay till the end.
    Looking through them held every call up for 90 ms, about once a second under load."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def _is_news(record: logging.LogRecord) -> bool:
    """Answers that were cut off on purpose, so that the client sees it, have their events."""
    return "without completing response" not in record.getMessage()


def _changed(config: Config) -> tuple[int, int] | None:
    """What changes when the file does."""
    try:
        stat = config.path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size

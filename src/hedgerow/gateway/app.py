"""The gateway as an ASGI application: a few addresses of its own, everything else is an exchange with a provider."""

import asyncio
import logging
import traceback

import orjson

from hedgerow.errors import SettingError
from hedgerow.gateway.admin import may_administer
from hedgerow.gateway.client import Client, Receive, Refused, Scope, Send
from hedgerow.gateway.config import Config, load
from hedgerow.gateway.door import check_head
from hedgerow.gateway.exchange import Exchange
from hedgerow.gateway.house import House, Worker
from hedgerow.gateway.relay import CutShort

__all__ = ["Gateway"]

ADMIN = "/admin/"

log = logging.getLogger("hedgerow")


class Gateway:
    """An ASGI application. Belongs to one event loop, on which it starts with the lifespan protocol.

    `config` is the one it started with, `worker` which of the processes it is, `house` what is in force; `draining`: no new
    calls should come; `trouble`: why it could not start.
    """

    def __init__(self, config: Config, worker: Worker | None = None) -> None:
        self.config, self.worker = config, worker or Worker()
        self.house: House | None = None
        self.draining = False
        self.trouble: Exception | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def reload(self) -> bool:
        """Read the file again. A bad one is reported and changes nothing; False then."""
        before = self.house
        assert before is not None
        try:
            config = load(before.config.path)
            if config.gateway.listen != before.config.gateway.listen or config.gateway.workers != self.worker.of:
                log.warning("listen and workers take effect at the next start")
            after = House(config, self.worker, before)
        except (SettingError, OSError) as error:
            log.error("the configuration was not reloaded, the old one stays in force: %s", error)
            return False
        except Exception as error:  # logged, without its words, which may have a key in them; the calls go on
            kind, where = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
            log.error("the configuration was not reloaded, the old one stays in force: %s\n%s", kind, where)
            return False
        for warning in config.warnings:
            log.warning("%s", warning)
        self.house = after
        leaving = asyncio.get_running_loop().create_task(before.leave_to(after))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        log.warning("the configuration was reloaded from %s", config.path)
        return True

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self.house = House(self.config, self.worker)
        except (SettingError, OSError) as error:
            self.trouble = error
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for leaving in self._leaving:
            leaving.cancel()
        await self.house.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        house, path = self.house, scope["path"]
        assert house is not None
        if path == "/healthz":
            await _reply(send, 200, {"status": "ok"})
        elif path == "/readyz":
            await _reply(send, *((503, {"status": "draining"}) if self.draining else (200, {"status": "ready"})))
        elif path.startswith(ADMIN):
            await self._administer(house, scope, receive, send)
        else:
            client = Client(scope, receive, send)
            client.always = house.origins.of(client)
            try:
                await Exchange(house, client).run()
            except CutShort:
                await client.send_head()  # and the server cuts the connection of an answer that was not ended

    async def _administer(self, house: House, scope: Scope, receive: Receive, send: Send) -> None:
        client = Client(scope, receive, send)
        try:
            check_head(client)
            house.origins.check(client)
        except Refused as refused:
            await _reply(send, refused.trouble.status, {"error": {"message": refused.trouble.message}})
            return
        if not may_administer(house.config, scope):
            fix = "set admin_key in [gateway] and send it as a bearer token; `admin` there says who needs none"
            await _reply(send, 403, {"error": {"message": f"this is for administrators: {fix}"}})
        elif scope["path"] == "/admin/stats" and scope["method"] == "GET":
            policies = {name: hedger.stats() for name, hedger in house.hedgers.items()}
            about = {"worker": house.worker.number, "workers": house.worker.of, "unwritable": house.unwritable}
            await _reply(send, 200, {**about, "policies": policies})
        else:
            await _reply(send, 404, {"error": {"message": "there is only GET /admin/stats"}})


async def _reply(send: Send, status: int, body: object) -> None:
    data = orjson.dumps(body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(data)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})

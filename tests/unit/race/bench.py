"""A Hedger on a manual clock, and calls to it by script."""

import asyncio

from tests.unit.race.scripted import Carrier, Does, request

from hedgerow.clock import ManualClock
from hedgerow.engine import Hedger
from hedgerow.policy.gate import Place
from hedgerow.settings import Policy
from hedgerow.values.event import Event

HERE = Place(name="primary")
ELSEWHERE = Place(name="elsewhere", account="elsewhere")


class Bench:
    """A Hedger with a fixed delay of 1 s on a manual clock."""

    def __init__(self, *places: Place, **settings: object) -> None:
        self.clock = ManualClock()
        policy = Policy(**{"delay": 1.0, "trigger": "first_token", **settings})  # type: ignore[arg-type]
        self.hedger = Hedger(policy, (HERE, *places), clock=self.clock)

    def send(self, *scripts: Does, stream: bool = False, **fields: object) -> tuple[Carrier, "asyncio.Task[bytes]"]:
        carrier = Carrier(self.clock, scripts)
        return carrier, asyncio.ensure_future(self.read(carrier, stream, **fields))

    async def read(self, carrier: Carrier, stream: bool, **fields: object) -> bytes:
        delivery = await self.hedger.send(request(stream=stream, **fields), carrier)
        return b"".join([chunk async for chunk in delivery])

    def events(self) -> list[Event]:
        return list(self.hedger.events)

"""One request through the gateway: read → admit → route → hedge → relay."""

import asyncio
import logging
from collections.abc import Sequence

import httpx2

from hedgerow.call_context import said_of_call
from hedgerow.dialects.encoding import ContentDecoder
from hedgerow.dialects.headers import header_value
from hedgerow.dialects.lenient_json import is_object, loads_or_none
from hedgerow.gateway.apis import Trouble, error_in_api
from hedgerow.gateway.asking import Asked, Asking
from hedgerow.gateway.client import Client, Gone, Refused
from hedgerow.gateway.connection import Answer
from hedgerow.gateway.headers import answer_headers, in_a_header
from hedgerow.gateway.held import AnswerTooLarge, Held, TooMuchHeld
from hedgerow.gateway.house import House
from hedgerow.gateway.relay import EVENT_STREAM, Vigil, is_event_stream, relay_event_stream, relay_plain
from hedgerow.gateway.upstream import BrokenAnswer, DeadlineOver, GatewayCall
from hedgerow.race.stream import Delivery
from hedgerow.retry_ledger import NOT_AGAIN

__all__ = ["Exchange"]

SETTLED_S = 30.0  # after an exchange: its event is written at once, or there is none
UNBUFFERED = (b"x-accel-buffering", b"no")  # nginx would keep a stream back until it is whole

log = logging.getLogger("hedgerow")
Pairs = Sequence[tuple[bytes, bytes]]


class Exchange:
    """One client's request and its answer. Await run() once; belongs to one task."""

    def __init__(self, house: House, client: Client) -> None:
        self._house, self._client = house, client
        self._asking = Asking(house, client)

    async def run(self) -> None:
        """Answers, whatever happens. Raises CutShort where only a cut connection can tell that something is missing."""
        try:
            if (allowed := self._house.origins.preflight(self._client)) is not None:
                self._client.begin(204, allowed)
                await self._client.end()
                return
            asked = await self._asking.read()
        except Gone:
            return
        except Refused as refused:
            await self._refuse(refused.trouble, refused.headers)
            return
        except Exception as error:  # logged there
            await self._refuse(_trouble_of(error))
            return
        if self._house.config.gateway.record_bodies == "all":
            self._client.kept = []
        task = asyncio.current_task()
        assert task is not None
        try:
            with self._client.served_by(task):
                await self._answer(asked)
        except asyncio.CancelledError:
            if not self._client.gone:
                raise
            task.uncancel()
        finally:
            self._release(asked)
            self._keep(asked)

    def _release(self, asked: Asked) -> None:
        """What was set aside of the client key's day is free again, if no event has said in time what the call cost."""
        owner = asked.owner
        if owner is not None and owner.has_a_limit:
            asyncio.get_running_loop().call_later(SETTLED_S, owner.release, self._asking.id)

    def _keep(self, asked: Asked) -> None:
        """Write down what was asked, where the file says so, and what was answered."""
        if (bodies := self._house.bodies) is not None:
            answer = None if self._client.kept is None else b"".join(self._client.kept)
            bodies.keep(self._asking.id, asked.wire, asked.address, answer)

    async def _answer(self, asked: Asked) -> None:
        house, limits = self._house, self._house.config.gateway
        with Held(house.held, most_bytes=limits.max_answer, of_all_bytes=limits.max_held) as held:
            call = GatewayCall(
                house.connections,
                asked.route.targets,
                asked.address,
                asked.wire,
                trace=asked.trace,
                decodable=asked.facts.answer_known,
                held=held,
            )
            try:
                delivery = await self._hedged(asked, call)
            except Exception as error:  # told to the client; the event has the details
                await self._fail(error, asked)
                return
            if isinstance(delivery.response, Answer):
                delivery.response.held = None
            try:
                await self._relay(asked, delivery)
            finally:
                await delivery.aclose()

    async def _hedged(self, asked: Asked, call: GatewayCall) -> Delivery:
        """While nothing is there to say, a client that waits for events hears that we are still here."""
        vigil = None
        if asked.sends_events:
            headers = self._own_headers([(b"content-type", EVENT_STREAM.encode()), UNBUFFERED])
            vigil = Vigil(self._client, headers, self._house.clock)
        places = asked.route.places(asked.key)
        try:
            with said_of_call(asked.said):
                return await asked.route.hedger.send(
                    asked.wire,
                    call,
                    sdk_retry=asked.sdk_retry,
                    retried_above=asked.retried_above,
                    places=places,
                    facts=asked.facts,
                )
        finally:
            if vigil is not None:
                await vigil.end()

    async def _relay(self, asked: Asked, delivery: Delivery) -> None:
        client = self._client
        events, clock = is_event_stream(delivery), self._house.clock
        if client.answering:  # keep-alive comments have gone out, so status and headers have, too
            if 200 <= delivery.status < 300 and events:
                await relay_event_stream(client, delivery, asked.api, clock, decode=True)
            else:
                await self._as_event(asked, delivery)
            return
        streams = events or asked.facts.stream  # Gemini's may be a JSON array
        story = [*self._story(asked, delivery), UNBUFFERED] if streams else self._story(asked, delivery)
        headers = answer_headers(delivery.headers, self._own_headers(story))
        if events:  # comments, and the error that ends a broken one, make it longer
            headers = [pair for pair in headers if pair[0] != b"content-length"]
        client.begin(delivery.status, headers)
        if not delivery.at_hand:
            await client.send_head()
        if events:
            await relay_event_stream(client, delivery, asked.api, clock, decode=False)
        else:
            await relay_plain(client, delivery)

    async def _as_event(self, asked: Asked, delivery: Delivery) -> None:
        """An error, or an answer in one piece, where a stream has been promised."""
        body = b"".join([chunk async for chunk in delivery])
        body = ContentDecoder(header_value(delivery.headers, b"content-encoding")).decode(body)
        if delivery.status >= 400 or not is_object(loads_or_none(body)):
            body = error_in_api(asked.api, delivery.status, body)
        await self._client.end(asked.api.error_frames(body, asked.facts.dialect))

    async def _fail(self, error: Exception, asked: Asked) -> None:
        """No attempt had anything to deliver."""
        trouble = _trouble_of(error)
        if self._client.answering:
            frames = asked.api.error_frames(asked.api.error_body(trouble), asked.facts.dialect)
            await self._client.end(frames)
            return
        about = [NOT_AGAIN] if isinstance(error, DeadlineOver) else []
        await self._refuse(trouble, [(b"retry-after", b"1")] if isinstance(error, TooMuchHeld) else about)

    async def _refuse(self, trouble: Trouble, headers: Pairs = ()) -> None:
        body = self._asking.api.error_body(trouble)
        about = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
        if not self._client.read_whole:
            await self._client.discard()
            about.append((b"connection", b"close"))
        self._client.begin(trouble.status, self._own_headers(about))
        await self._client.end(body)

    def _story(self, asked: Asked, delivery: Delivery) -> list[tuple[bytes, bytes]]:
        """How an answer came about."""
        race = delivery.race
        attempt, began_s = race.attempts[race.chosen or 0], race.state.began_s
        reason = race.attempts[-1].reason if len(race.attempts) > 1 else race.plan
        story = [
            (b"hedgerow-winner", f"{attempt.number} {asked.route.targets[attempt.target].name}".encode()),
            (b"hedgerow-attempts", str(len(race.attempts)).encode()),
            (b"hedgerow-reason", in_a_header(reason)),
        ]
        if attempt.first_token_s is not None:
            story.append((b"server-timing", f"first_token;dur={(attempt.first_token_s - began_s) * 1000:.1f}".encode()))
        return story

    def _own_headers(self, headers: Pairs) -> list[tuple[bytes, bytes]]:
        """Those, and what the gateway says of every answer."""
        total_ms = (self._house.clock.now() - self._asking.began_s) * 1000
        timing = (b"server-timing", f"total;dur={total_ms:.1f}".encode())
        return [*headers, (b"hedgerow-id", self._asking.id.encode()), timing]


def _trouble_of(error: Exception) -> Trouble:
    """What a client is told of an error that has no answer of a provider's. Never an address: it might hold a key."""
    if isinstance(error, TimeoutError):
        return Trouble(504, str(error) or "the provider did not answer in time", "upstream_timeout")
    if isinstance(error, BrokenAnswer):
        return Trouble(502, str(error), "stream_broken")
    if isinstance(error, AnswerTooLarge):
        return Trouble(502, f"{error}: max_answer in [gateway] is the limit", "answer_too_large")
    if isinstance(error, TooMuchHeld):
        return Trouble(503, f"{error}: max_held in [gateway] is the limit", "too_much_held")
    if isinstance(error, httpx2.TimeoutException):
        return Trouble(504, f"the provider cannot be reached in time ({type(error).__name__})", "upstream_timeout")
    if isinstance(error, httpx2.TransportError | OSError):
        return Trouble(502, f"the provider cannot be reached ({type(error).__name__})", "upstream_unreachable")
    log.error("a request failed inside the gateway", exc_info=error)
    return Trouble(500, "the gateway failed; its log says how", "internal_error")

from hedgerow.clock import ManualClock
from hedgerow.replay.calls import Measured, Piece, measure


async def pieces(clock, *timed):
    """Each piece after its wait; an exception in place of one is raised."""
    for wait_s, piece in timed:
        clock.advance(wait_s)
        if isinstance(piece, Exception):
            raise piece
        yield piece


def piece(*, answer_id="a", content=False, last=False):
    return Piece(answer_id=answer_id, content=content, last=last)


async def measured(*timed):
    clock = ManualClock()
    return await measure(pieces(clock, *timed), clock)


async def test_the_first_token_is_the_first_content_and_the_response_is_full_when_the_stream_ends():
    call = await measured(
        (0.2, piece()), (0.3, piece(content=True)), (0.4, piece(content=True)), (0.1, piece(last=True))
    )
    assert call == Measured(first_token_s=0.5, full_response_s=1.0, answers=1)


async def test_a_call_that_raises_is_failed_by_the_name_of_its_error_and_has_no_full_response():
    call = await measured((1.0, piece(content=True)), (1.0, ConnectionResetError("gone")))
    assert call == Measured(first_token_s=1.0, full_response_s=None, answers=0, error="ConnectionResetError")


async def test_a_stream_that_stops_without_saying_that_it_is_complete_is_no_answer():
    call = await measured((1.0, piece(content=True)))
    assert (call.full_response_s, call.answers, call.error) == (None, 0, "no end")


async def test_two_answers_in_one_call_would_be_seen():
    call = await measured((1.0, piece(last=True)), (1.0, piece(answer_id="b", last=True)))
    assert call.answers == 2

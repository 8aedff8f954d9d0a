"""Looking into compressed answers."""

import gzip
import zlib

import pytest

from hedgerow.dialects.encoding import MAX_GROWN_BYTES, ContentDecoder, decodable_accept_encoding

TEXT = b"".join(b"data: token %d\n\n" % number for number in range(500))


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


ENCODED = {
    "gzip": ("gzip", gzip.compress(TEXT)),
    "x-gzip": ("X-GZip", gzip.compress(TEXT)),
    "zlib": ("deflate", zlib.compress(TEXT)),
    "raw deflate": ("deflate", raw_deflate(TEXT)),
    "gzip called deflate": ("deflate", gzip.compress(TEXT)),
    "two members": ("gzip", gzip.compress(TEXT[:900]) + gzip.compress(TEXT[900:])),
    "padded members": ("gzip", gzip.compress(TEXT[:900]) + b"\0\0" + gzip.compress(TEXT[900:]) + b"\0\0\0"),
    "identity": ("identity", TEXT),
    "none": (None, TEXT),
}


@pytest.mark.parametrize("case", ENCODED)
@pytest.mark.parametrize("piece_bytes", [1, 100, 1_000_000])
def test_the_content_is_seen_however_the_bytes_are_cut(case, piece_bytes):
    encoding, data = ENCODED[case]
    decoder = ContentDecoder(encoding)
    seen = b"".join(decoder.decode(data[at : at + piece_bytes]) for at in range(0, len(data), piece_bytes))
    assert seen == TEXT
    assert decoder.sees


@pytest.mark.parametrize("wbits", [31, 15, -15])
def test_a_flushed_chunk_is_seen_before_the_next_arrives(wbits):
    packer = zlib.compressobj(wbits=wbits)
    decoder = ContentDecoder("gzip" if wbits == 31 else "deflate")
    for event in (b"data: one\n\n", b"data: two\n\n"):
        assert decoder.decode(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)) == event


def test_truncated_data_shows_what_there_is():
    packed = gzip.compress(TEXT)
    decoder = ContentDecoder("gzip")
    assert TEXT.startswith(decoder.decode(packed[: len(packed) // 2]))
    assert decoder.sees


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "gzip, gzip", "compress"])
def test_an_unknown_encoding_says_that_it_cannot_be_seen_through(encoding):
    decoder = ContentDecoder(encoding)
    assert not decoder.sees
    assert decoder.decode(b"anything") == b""


def test_damaged_data_ends_the_view_without_an_exception():
    decoder = ContentDecoder("gzip")
    decoder.decode(b"this is not gzip")
    assert not decoder.sees
    assert decoder.decode(gzip.compress(TEXT)) == b""


def test_a_decompression_bomb_cannot_exhaust_memory():
    bomb = gzip.compress(b"\0" * (4 * MAX_GROWN_BYTES))
    decoder = ContentDecoder("gzip")
    assert len(decoder.decode(bomb)) <= MAX_GROWN_BYTES
    assert not decoder.sees


def test_a_bomb_of_many_small_members_is_bounded_as_a_whole():
    bomb = gzip.compress(b"\0" * 1_000_000) * 40
    decoder = ContentDecoder("gzip")
    assert len(decoder.decode(bomb)) <= MAX_GROWN_BYTES
    assert not decoder.sees


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("gzip, deflate", "gzip, deflate"),
        ("gzip,deflate;q=0.5 , identity", "gzip,deflate;q=0.5 , identity"),
        ("", ""),
        ("gzip, deflate, br, zstd", "gzip, deflate"),
        ("br;q=1.0, GZIP;q=0.8, *;q=0.1", "GZIP;q=0.8"),
        ("br", "identity"),
        ("*", "identity"),
        ("br;q=0, gzip", "br;q=0, gzip"),
        ("gzip, *;q=0", "gzip, *;q=0"),
        ("br, identity;q=0", "identity"),
        ("gzip;q=x, br", "gzip;q=x"),
    ],
)
def test_accept_encoding_is_narrowed_to_what_can_be_seen_through(asked, sent):
    assert decodable_accept_encoding(asked) == sent


def test_a_body_in_thousands_of_members_is_not_looked_into() -> None:
    """Each costs a decoder, and a copy of what follows it."""
    decoder = ContentDecoder("gzip")
    assert decoder.decode(gzip.compress(b"") * 500 + gzip.compress(b"hi")) == b"hi"
    assert decoder.sees
    assert decoder.decode(gzip.compress(b"") * 12_000 + gzip.compress(b"hi")) == b""
    assert not decoder.sees

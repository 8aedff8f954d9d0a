"""Every format there is an importer for; the first that recognises a row reads it."""

from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.formats.litellm import LITELLM_PAYLOAD, LITELLM_SPEND_LOGS
from hedgerow.analysis.ingest.formats.plain import PLAIN
from hedgerow.analysis.ingest.unpack import Unpacker

__all__ = ["FORMATS", "UNPACKERS"]

# From the most to the least particular.
FORMATS: tuple[Format, ...] = (LITELLM_PAYLOAD, LITELLM_SPEND_LOGS, PLAIN)
UNPACKERS: tuple[Unpacker, ...] = ()

"""Every format there is an importer for; the first that recognises a row reads it."""

from hedgerow.analysis.ingest.format import Format
from hedgerow.analysis.ingest.formats.access_logs import ENVOY, NGINX
from hedgerow.analysis.ingest.formats.bedrock import BEDROCK, BEDROCK_RECORDS
from hedgerow.analysis.ingest.formats.benchmarks import BENCHMARK, BENCHMARK_RECORDS, BFCL, LLMPERF
from hedgerow.analysis.ingest.formats.gateways import CLOUDFLARE, OPENROUTER, OPENROUTER_ACTIVITY, TENSORZERO
from hedgerow.analysis.ingest.formats.helicone import HELICONE
from hedgerow.analysis.ingest.formats.langfuse import LANGFUSE
from hedgerow.analysis.ingest.formats.litellm import LITELLM_PAYLOAD, LITELLM_SPEND_LOGS
from hedgerow.analysis.ingest.formats.llm_cli import LLM_CLI
from hedgerow.analysis.ingest.formats.otlp import PHOENIX_SPANS, SPANS
from hedgerow.analysis.ingest.formats.own import ATTEMPTS, EVENT_RECORDS, EVENTS
from hedgerow.analysis.ingest.formats.plain import PLAIN
from hedgerow.analysis.ingest.formats.spans import CONSOLE_SPANS, OTLP_RECORDS
from hedgerow.analysis.ingest.unpack import Unpacker

__all__ = ["FORMATS", "UNPACKERS"]

# From the most to the least particular.
FORMATS: tuple[Format, ...] = (
    EVENTS,
    ATTEMPTS,
    SPANS,
    BEDROCK,
    BENCHMARK,
    LITELLM_PAYLOAD,
    LITELLM_SPEND_LOGS,
    LANGFUSE,
    HELICONE,
    PHOENIX_SPANS,
    OPENROUTER,
    OPENROUTER_ACTIVITY,
    TENSORZERO,
    CLOUDFLARE,
    LLM_CLI,
    LLMPERF,
    BFCL,
    NGINX,
    ENVOY,
    PLAIN,
)
UNPACKERS: tuple[Unpacker, ...] = (EVENT_RECORDS, *OTLP_RECORDS, CONSOLE_SPANS, *BEDROCK_RECORDS, *BENCHMARK_RECORDS)

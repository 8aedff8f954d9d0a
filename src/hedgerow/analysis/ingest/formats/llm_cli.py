"""simonw/llm: `logs.db`, table `responses`.

The columns are taken as they are commonly described; since 0.32 new calls go to other tables (release notes of 0.32rc1),
which are not read.
"""

from hedgerow.analysis.ingest.fields import either, millis, moment, number, text
from hedgerow.analysis.ingest.format import Format

__all__ = ["LLM_CLI"]

LLM_CLI = Format(
    name="llm logs.db",
    needs=(("duration_ms",), ("datetime_utc",), ("model",)),
    columns={
        "t_start": moment("datetime_utc"),
        "model": either(text("resolved_model"), text("model")),
        "total_s": millis("duration_ms"),
        "input_tokens": number("input_tokens"),
        "output_tokens": number("output_tokens"),
        "trace_id": text("conversation_id"),
    },
    cautions=("it has no first token, and calls that failed are not in it",),
)

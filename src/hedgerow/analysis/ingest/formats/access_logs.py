"""Access logs as JSON: nginx (times in seconds, written when a request ends) and Envoy (milliseconds, with its start).

Time until the upstream's headers stands for the first token: close for streams whose provider sends headers with the first
event, too early for the others; formats are of the user's making, so names are those of the variables (nginx: $request_time).
"""

from hedgerow.analysis.ingest.fields import answered, either, log_moment, millis, moment, number, text, zoneless
from hedgerow.analysis.ingest.format import Format

__all__ = ["ENVOY", "NGINX"]

CAUTIONS = (
    "every request in it counts as a call: leave out what is no LLM call",
    "when the upstream's headers came stands for the first token",
)

_ended = either(
    moment("msec"), moment("time_iso8601"), log_moment("time_local"), moment("@timestamp"), moment("timestamp")
)
_upstream = text("upstream_response_time")
NGINX = Format(
    name="nginx access log",
    needs=(("request_time",), ("upstream_response_time", "upstream_header_time")),
    columns={
        "t_start": _ended - number("request_time"),
        "provider": either(text("upstream_host"), text("proxy_host"), text("upstream_addr"), text("host")),
        "model": text("model"),
        "ttft_s": number("upstream_header_time"),
        "total_s": number("request_time"),
        "ok": answered("status"),
    },
    notices={
        "the call went to several upstreams, one after the other, inside its time": _upstream.has(","),
        "the moment has no zone and is taken as UTC": zoneless("time_iso8601"),
    },
    cautions=CAUTIONS,
)

ENVOY = Format(
    name="Envoy access log",
    needs=(("duration",), ("start_time",), ("response_code",)),
    columns={
        "t_start": moment("start_time"),
        "provider": either(text("upstream_cluster"), text("authority"), text(":authority"), text("upstream_host")),
        "model": text("model"),
        "ttft_s": either(
            millis("response_duration"), millis("upstream_service_time"), millis("x-envoy-upstream-service-time")
        ),
        "total_s": millis("duration"),
        "ok": answered("response_code"),
    },
    notices={
        "the call was retried by Envoy inside its time": either(
            number("upstream_request_attempt_count"), number("attempt_count")
        ).above(1)
    },
    cautions=CAUTIONS,
)

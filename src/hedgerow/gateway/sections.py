"""The tables of hedgerow.toml as they are written: types, ranges and defaults. What they come to is decided in config."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

__all__ = [
    "ANY_ORIGIN",
    "NAME",
    "ClientKeySection",
    "File",
    "GatewaySection",
    "PriceSection",
    "RouteSection",
    "SloSection",
    "TargetSection",
]

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]
GlobPath = Annotated[str, Field(pattern="^[/*]")]
Usd = Annotated[float, Field(ge=0)]
ANY_ORIGIN = "*"
ORIGIN = re.compile(
    r"https?://[a-z0-9.-]+(?::\d{1,5})?|https?://\[[0-9a-f:]+\](?::\d{1,5})?|[a-z][a-z0-9+-]+://[a-z0-9.-]+"
)
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)?\s*")
BYTES_PER_UNIT = {"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def _origin(text: str) -> str:
    if text == ANY_ORIGIN or ORIGIN.fullmatch(text) is not None:
        return text
    raise ValueError('an origin as browsers send it, "https://app.example", without path or slash at its end')


Origin = Annotated[str, AfterValidator(_origin)]


class Section(BaseModel):
    """A table in which every key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, hide_input_in_errors=True)


class GatewaySection(Section):
    """`[gateway]`"""

    listen: str = Field(default="127.0.0.1:8700", description="HOST:PORT; port 0 takes a free one")
    workers: int = Field(
        default=1, ge=1, le=64, description="processes on one socket; budgets and limits are shared out"
    )
    events: str | None = Field(
        default=None, description="where records are kept: sqlite:///hedgerow.db, jsonl:///calls.jsonl"
    )
    state: str | None = Field(default=None, description="a folder that keeps what was learnt over restarts")
    shared_state: str | None = Field(default=None, repr=False, description="not in this version: refused")
    admin_key: str | None = Field(default=None, repr=False, description="bearer token for /admin/…; a text or env:NAME")
    admin: Literal["auto", "loopback", "off"] = Field(
        default="auto",
        description="who may ask /admin/… without a key: loopback: programs on this machine; off: nobody, not even with the key; "
        "auto: loopback, but nobody where listen is another address or there is a [[client_key]]",
    )
    max_body: int = Field(
        default=20_000_000, ge=1_000, le=1_000_000_000, description='largest request: bytes, or "20MB"'
    )
    max_answer: int = Field(
        default=64_000_000,
        ge=1_000,
        le=1_000_000_000,
        description='most of one answer that has to be whole before it is delivered: bytes, or "64MB"; of errors 1 MB',
    )
    max_held: int = Field(
        default=512_000_000,
        ge=1_000_000,
        le=100_000_000_000,
        description='most of all such answers together, in one worker: bytes, or "512MB"; past it 503',
    )
    cors_origins: list[Origin] = Field(
        default_factory=list[str],
        description='pages that may call from a browser: "https://app.example"; "*" with client keys only',
    )
    hosts: list[str] = Field(
        default_factory=list[str],
        description="names by which a gateway on the loopback without client keys may be asked, beside localhost",
    )
    record_bodies: Literal[False, True, "all"] = Field(
        default=False, description="true keeps requests for replay beside the events, all also answers"
    )
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$", description="of reports")
    usd_rate: float = Field(default=1.0, gt=0, description="units of that currency for one USD")

    @field_validator("max_body", "max_answer", "max_held", mode="before")
    @classmethod
    def _read_size(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if (match := SIZE.fullmatch(value)) is None:
            raise ValueError('bytes, or a size such as "20MB"')
        size = float(match[1]) * BYTES_PER_UNIT[match[2] or "B"]
        return int(min(size, 1e15))  # of 400 digits it is infinite


class TargetSection(Section):
    """`[[target]]`"""

    name: Name = Field(description="how routes, events and headers call it")
    like: str | None = Field(default=None, description="another target, whose values hold where this one has none")
    dialect: Literal["openai", "anthropic", "gemini"] | None = Field(default=None, description="the API it speaks")
    base_url: str | None = Field(default=None, repr=False, description="as the SDK of that API takes it")
    api_key: str | None = Field(
        default=None, repr=False, description='a text, env:NAME, or "client": the client\'s own goes through'
    )
    cancel_billing: Literal["so_far", "full", "none", "unknown"] = Field(
        default="unknown", description="what it charges for a call that was closed"
    )
    prefill: bool = Field(default=False, description="does it go on from the beginning of an answer")
    set: dict[str, Any] = Field(
        default_factory=dict[str, Any], repr=False, description="laid over the client's JSON body"
    )


class RouteSection(Section):
    """`[[route]]`; the first that fits counts"""

    path: str = Field(pattern="^[/*]", description="of the client's address; * stands for anything")
    model: str = Field(default="*", description="asked for; * stands for anything, case does not matter")
    targets: list[str] = Field(
        min_length=1, max_length=8, description="the primary, then where its backups go, in order"
    )
    policy: str | None = Field(default=None, description="a [policy.NAME]; left out: the defaults")


class SloSection(Section):
    """`[slo.NAME]`; reports are to be measured against it"""

    first_token_p99_s: float | None = Field(default=None, gt=0, description="seconds")
    full_response_p99_s: float | None = Field(default=None, gt=0, description="seconds")
    extra_cost: float | None = Field(default=None, ge=0, description="share of spend")


class PriceSection(Section):
    """`[[price]]`; before the public list"""

    model: str = Field(description="a name or a pattern")
    input: Usd = Field(description="USD per million tokens")
    output: Usd = Field(description="USD per million tokens")
    cached: Usd | None = Field(default=None, description="of cached input; left out: no discount")
    provider: str | None = Field(default=None, description="pattern for the target's host; left out: any")
    service_tier: str | None = Field(default=None, description="priority…; left out: any")


class ClientKeySection(Section):
    """`[[client_key]]`; `hedgerow key new NAME` prints it"""

    name: Name = Field(description="how events and limits call it")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="of the key, in hexadecimal")
    segment: Name | None = Field(default=None, description="the class of caller that it stands for")
    trust_segment: Literal["off", "header", "signed"] = Field(
        default="off", description="may a request name another segment: never, always, or if it is signed"
    )
    segment_secret: str | None = Field(default=None, repr=False, description="what signs segments; a text or env:NAME")
    paths: list[GlobPath] = Field(
        default_factory=list[str], description="patterns of paths that it may use; empty: all that the routes name"
    )
    requests_per_minute: int | None = Field(default=None, ge=1, description="left out: no limit")
    usd_per_day: float | None = Field(
        default=None, gt=0, description="by the upper bound of costs, UTC, calls under way included; left out: no limit"
    )
    unknown_cost_usd: float | None = Field(
        default=None,
        ge=0,
        description="what a call of unknown price counts; left out: such calls are refused if there is usd_per_day",
    )


class File(Section):
    """The whole file. Policies are read by the settings table of the library, not here."""

    gateway: GatewaySection = GatewaySection()
    target: list[TargetSection] = Field(min_length=1)
    route: list[RouteSection] = Field(min_length=1)
    policy: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    slo: dict[str, SloSection] = Field(default_factory=dict[str, SloSection])
    price: list[PriceSection] = Field(default_factory=list[PriceSection])
    client_key: list[ClientKeySection] = Field(default_factory=list[ClientKeySection])

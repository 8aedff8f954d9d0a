"""The tables of hedgerow.toml as they are written: types, ranges and defaults. What they come to is decided in config."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ["ClientKeySection", "File", "GatewaySection", "PriceSection", "RouteSection", "SloSection", "TargetSection"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Usd = Annotated[float, Field(ge=0)]
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)?\s*")
BYTES_PER_UNIT = {"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class Section(BaseModel):
    """A table in which every key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class GatewaySection(Section):
    """`[gateway]`"""

    listen: str = "127.0.0.1:8700"
    workers: int = Field(default=1, ge=1, le=64)
    events: str | None = None
    state: str | None = None
    shared_state: str | None = None
    admin_key: str | None = None
    max_body: int = Field(default=20_000_000, ge=1_000, le=1_000_000_000)
    record_bodies: Literal[False, True, "all"] = False
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    usd_rate: float = Field(default=1.0, gt=0)

    @field_validator("max_body", mode="before")
    @classmethod
    def _read_size(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if (match := SIZE.fullmatch(value)) is None:
            raise ValueError('bytes, or a size such as "20MB"')
        return int(float(match[1]) * BYTES_PER_UNIT[match[2] or "B"])


class TargetSection(Section):
    """`[[target]]`"""

    name: Name
    like: str | None = None
    dialect: Literal["openai", "anthropic", "gemini"] | None = None
    base_url: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    cancel_billing: Literal["so_far", "full", "none", "unknown"] = "unknown"
    prefill: bool = False
    set: dict[str, Any] = Field(default_factory=dict[str, Any])


class RouteSection(Section):
    """`[[route]]`"""

    path: str = Field(pattern="^[/*]")
    model: str = "*"
    targets: list[str] = Field(min_length=1, max_length=8)
    policy: str | None = None


class SloSection(Section):
    """`[slo.NAME]`"""

    first_token_p99_s: float | None = Field(default=None, gt=0)
    full_response_p99_s: float | None = Field(default=None, gt=0)
    extra_cost: float | None = Field(default=None, ge=0)


class PriceSection(Section):
    """`[[price]]`, USD per million tokens"""

    model: str
    input: Usd
    output: Usd
    cached: Usd | None = None
    provider: str | None = None
    service_tier: str | None = None


class ClientKeySection(Section):
    """`[[client_key]]`"""

    name: Name
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    segment: Name | None = None
    trust_segment: Literal["off", "header", "signed"] = "off"
    segment_secret: str | None = Field(default=None, repr=False)
    requests_per_minute: int | None = Field(default=None, ge=1)
    usd_per_day: float | None = Field(default=None, gt=0)


class File(Section):
    """The whole file. Policies are read by the settings table of the library, not here."""

    gateway: GatewaySection = GatewaySection()
    target: list[TargetSection] = Field(min_length=1)
    route: list[RouteSection] = Field(min_length=1)
    policy: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    slo: dict[str, SloSection] = Field(default_factory=dict[str, SloSection])
    price: list[PriceSection] = Field(default_factory=list[PriceSection])
    client_key: list[ClientKeySection] = Field(default_factory=list[ClientKeySection])

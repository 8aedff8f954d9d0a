"""Gemini's addresses: model and method stand in the path, `…/models/gemini-x:generateContent`, on both of Google's hosts."""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from hedgerow.short_text import name_of
from hedgerow.values.request import WireRequest

__all__ = ["STREAM", "WHOLE", "camel", "in_camel_case", "may_draw", "method_of", "model_of", "with_model"]

# The Gemini API has models/… and tunedModels/…; Vertex …/publishers/google/models/… and …/endpoints/….
CALL = re.compile(r".*?((?:models|tunedModels|endpoints)/[^/:]+):([A-Za-z]+)/?")
MODEL = re.compile(r"(?<=/models/)[^/:]+(?=:[A-Za-z]+$)")
WHOLE, STREAM = "generateContent", "streamGenerateContent"


def method_of(request: WireRequest) -> str | None:
    """What is asked of the model ("generateContent"); None if it is no POST to a model."""
    found = CALL.fullmatch(request.path)
    return found[2] if found and request.method.upper() == "POST" else None


def model_of(request: WireRequest) -> str | None:
    """The model's name as it is kept; tuned ones and Vertex's endpoints keep what they are in front."""
    found = CALL.fullmatch(request.path)
    return name_of(unquote(found[1]).removeprefix("models/")) if found else None


def may_draw(request: WireRequest) -> bool:
    """Does the model draw without being asked to? Its whole name says so: those that speak must be asked for sound."""
    found = CALL.fullmatch(request.path)
    return found is not None and "-image" in unquote(found[1])


def with_model(path: str, model: object) -> str | None:
    """The path with another model in it; None if no model stands there, or none is given."""
    return MODEL.sub(lambda _: quote(model, safe="@"), path) if isinstance(model, str) and MODEL.search(path) else None


def camel(name: str) -> str:
    """A field's name as the API writes it; it takes snake_case just as well."""
    return re.sub("_([a-z0-9])", lambda found: found[1].upper(), name)


def in_camel_case(fields: Mapping[str, object]) -> dict[str, object]:
    """One object with its own names, not those inside its values, as the API writes them."""
    return {camel(name): value for name, value in fields.items()}

"""Makes of a Gemini stream the one body that generateContent would have answered with, and says which requests may be so asked.

Neighbouring texts of one kind become one part. A part with anything beside its text (a signature) stays a part of its own, as
Google asks of all who handle them. Lists of sources come in pieces or as the list so far: both become one list.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from hedgerow.dialects.gemini_answer import GeminiReader
from hedgerow.dialects.gemini_paths import STREAM, WHOLE, in_camel_case, may_draw, method_of
from hedgerow.dialects.gemini_safety import CLIENT_TOOLS, RULES, RULES_OF_SETTINGS, SAFE_FIELDS, SAFE_SETTINGS, tools_in
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_object, written
from hedgerow.dialects.openai_assembly_growth import First, Kinds, Latest, Record, Replaced
from hedgerow.dialects.request_body import object_to_rewrite
from hedgerow.values.request import StreamedRequest, WireRequest

__all__ = ["AssemblingGeminiReader", "streamed_content"]

ENDING = (f":{WHOLE}", f":{STREAM}")
PLAIN_TEXT = frozenset({"text", "thought"})
UNFINISHED_CALL = ("partialArgs", "willContinue")


def streamed_content(request: WireRequest) -> StreamedRequest | None:
    """The same body at the stream's address. None if it must go as it was asked: its stream would say less than its answer
    (sound, images, probabilities, several candidates, what Google's own tools found), or nobody knows what it would say."""
    if method_of(request) != WHOLE or not request.path.endswith(ENDING[0]) or may_draw(request):
        return None
    body = object_to_rewrite(request)
    if body is None or request.body is None or _loses_something(in_camel_case(body)):
        return None
    return StreamedRequest(body=request.body, ending=ENDING, query=(("alt", "sse"),))


def _loses_something(body: Mapping[str, object]) -> bool:
    settings = body.get("generationConfig")
    settings = in_camel_case(settings) if is_object(settings) else {}
    known = set(body) <= SAFE_FIELDS | set(RULES) and set(settings) <= SAFE_SETTINGS | set(RULES_OF_SETTINGS)
    spoken = settings.get("responseModalities")
    other_than_text = is_array(spoken) and any(str(kind).upper() != "TEXT" for kind in spoken)
    probabilities = settings.get("responseLogprobs") or settings.get("logprobs") is not None
    several = settings.get("candidateCount") not in (None, 1)  # a cut after the first of them would look like the end
    on_the_server = any(kind not in CLIENT_TOOLS for kind in tools_in(body))
    in_pieces = _calls_in_pieces(body.get("toolConfig"))
    return bool(not known or other_than_text or probabilities or several or on_the_server or in_pieces)


def _calls_in_pieces(tool_config: object) -> bool:
    """Vertex streams a call's arguments in pieces if asked to; the whole answer knows no such thing."""
    calling = in_camel_case(tool_config).get("functionCallingConfig") if is_object(tool_config) else None
    return is_object(calling) and bool(in_camel_case(calling).get("streamFunctionCallArguments"))


class _Parts:
    """The parts of one candidate. A Growing."""

    __slots__ = ("_blank", "_parts", "_texts")

    def __init__(self) -> None:
        self._parts: list[object] = []
        self._texts: list[str] | None = None  # pieces of the last part, if it may go on
        self._blank: object = None

    def take(self, piece: object) -> None:
        for part in piece if is_array(piece) else ():
            text = part.get("text") if is_object(part) else None
            if is_object(part) and isinstance(text, str) and part.keys() <= PLAIN_TEXT:
                self._take_text(part, text)
            else:
                self._close()
                self._parts.append(part)

    def value(self) -> object:
        self._close()
        return self._parts or ([] if self._blank is None else [self._blank])

    def _take_text(self, part: dict[str, object], text: str) -> None:
        if not text:
            self._blank = self._blank or part  # closes a stream; the whole answer has it only if it has nothing else
            return
        last = self._parts[-1] if self._parts else None
        if self._texts is not None and is_object(last) and bool(last.get("thought")) is bool(part.get("thought")):
            self._texts.append(text)
            return
        self._close()
        self._parts.append(part)
        self._texts = [text]

    def _close(self) -> None:
        last = self._parts[-1] if self._parts else None
        if self._texts is not None and is_object(last):
            last["text"] = "".join(self._texts)
        self._texts = None


def _is_unfinished(part: object) -> bool:
    call = part.get("functionCall") if is_object(part) else None
    return is_object(call) and any(call.get(field) for field in UNFINISHED_CALL)


class _Listed(Latest):
    """A list that comes in pieces, or each time as far as it has come."""

    __slots__ = ()

    def take(self, piece: object) -> None:
        if not (is_array(self._value) and is_array(piece)):
            super().take(piece)
        elif piece[: len(self._value)] == self._value:
            self._value = piece
        else:
            self._value += [entry for entry in piece if entry not in self._value]


SOURCES = (
    "groundingChunks",
    "groundingSupports",
    "imageSearchQueries",
    "retrievalQueries",
    "sourceFlaggingUris",
    "webSearchQueries",
)
CITATIONS: Kinds = MappingProxyType({"citationSources": _Listed, "citations": _Listed})
GROUNDING: Kinds = MappingProxyType(dict.fromkeys(SOURCES, _Listed))
PAGES: Kinds = MappingProxyType({"urlMetadata": _Listed})
CONTENT: Kinds = MappingProxyType({"parts": _Parts, "role": First})
CANDIDATE: Kinds = MappingProxyType(
    {
        "citationMetadata": partial(Record, CITATIONS),
        "content": partial(Record, CONTENT),
        "finishReason": Replaced,
        "groundingMetadata": partial(Record, GROUNDING),
        "index": First,
        "safetyRatings": Replaced,
        "urlContextMetadata": partial(Record, PAGES),
    }
)


class _Candidates:
    """Candidates by their index, in its order. A Growing."""

    __slots__ = ("_by_index",)

    def __init__(self) -> None:
        self._by_index: dict[int, Record] = {}

    def take(self, piece: object) -> None:
        for candidate in piece if is_array(piece) else ():
            if is_object(candidate):
                index = candidate.get("index")
                self._by_index.setdefault(index if isinstance(index, int) else 0, Record(CANDIDATE)).take(candidate)

    def value(self) -> object:
        return [self._by_index[index].value() for index in sorted(self._by_index)]


ANSWER: Kinds = MappingProxyType(
    {
        "candidates": _Candidates,
        "createTime": First,
        "modelVersion": First,
        "responseId": First,
        "usageMetadata": Replaced,  # each time the whole account so far
    }
)


class AssemblingGeminiReader(GeminiReader):
    """Reads an answer as GeminiReader does, and puts together what it has parsed: one pass for both. Not shared."""

    __slots__ = ("_answer", "_left_out")

    def __init__(self, headers: Headers) -> None:
        super().__init__(headers)
        self._answer = Record(ANSWER)
        self._left_out = False

    @property
    def complete(self) -> bool:
        """Was everything read that came, with no function call in pieces?"""
        return not (self._left_out or self.truncated)

    def response(self) -> bytes:
        """The whole answer as JSON; to be asked once, of an answer that has ended."""
        return written(self._answer.grown())

    def _read_chunk(self, chunk: dict[str, object]) -> None:
        super()._read_chunk(chunk)
        self._left_out = self._left_out or _has_unfinished_call(chunk)
        self._answer.take(chunk)


def _has_unfinished_call(chunk: Mapping[str, object]) -> bool:
    candidates = chunk.get("candidates")
    for candidate in candidates if is_array(candidates) else []:
        content = candidate.get("content") if is_object(candidate) else None
        parts = content.get("parts") if is_object(content) else None
        if is_array(parts) and any(map(_is_unfinished, parts)):
            return True
    return False

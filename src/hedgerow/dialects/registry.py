"""Which dialect reads a request: the first that recognises it, else the generic one."""

from hedgerow.dialects.anthropic import AnthropicMessages
from hedgerow.dialects.base import Dialect
from hedgerow.dialects.callables import Callables
from hedgerow.dialects.gemini import Gemini
from hedgerow.dialects.gemini_whole import GeminiWhole
from hedgerow.dialects.generic import Generic
from hedgerow.dialects.openai_chat import OpenAIChat
from hedgerow.dialects.openai_embeddings import OpenAIEmbeddings
from hedgerow.dialects.openai_responses import OpenAIResponses
from hedgerow.dialects.token_counts import TokenCounts
from hedgerow.values.request import WireRequest

__all__ = ["DIALECTS", "GENERIC", "dialect_for"]

DIALECTS: tuple[Dialect, ...] = (
    OpenAIChat(),
    OpenAIEmbeddings(),
    OpenAIResponses(),
    AnthropicMessages(),
    Gemini(),
    GeminiWhole(),
    TokenCounts(),
    Callables(),
)
GENERIC: Dialect = Generic()


def dialect_for(request: WireRequest) -> Dialect:
    """The dialect that can read this call's answers; `GENERIC` if there is none. Looks at method and path only."""
    return next((dialect for dialect in DIALECTS if dialect.recognises(request)), GENERIC)

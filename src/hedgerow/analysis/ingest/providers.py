"""Whose model a name is, for logs that do not name the provider."""

__all__ = ["PROVIDER_OF_MODEL"]

# The first pattern that a lower-case model name begins with, or has after a slash, decides.
BEGINNINGS: dict[str, tuple[str, ...]] = {
    "openai": ("gpt-", "chatgpt-", "o1", "o3", "o4", "text-embedding-", "davinci", "codex-"),
    "anthropic": ("claude",),
    "google": ("gemini", "gemma", "palm", "text-bison"),
    "mistral": ("mistral", "mixtral", "codestral", "ministral", "magistral", "pixtral", "devstral"),
    "meta": ("llama", "meta-llama"),
    "cohere": ("command", "c4ai"),
    "deepseek": ("deepseek",),
    "alibaba": ("qwen", "qwq"),
    "xai": ("grok",),
    "amazon": ("nova-", "titan", "amazon."),
}
_bare = "regexp_replace(lower(model), '^.*/', '')"

PROVIDER_OF_MODEL = (
    "case "
    + " ".join(
        f"when {' or '.join(f'starts_with({_bare}, {beginning!r})' for beginning in beginnings)} then {provider!r}"
        for provider, beginnings in BEGINNINGS.items()
    )
    + " end"
)

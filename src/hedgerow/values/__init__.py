"""The nouns: what a request asks, what an attempt did, what is recorded of both. Frozen, no behaviour beyond printing."""

"""hedgerow cuts the slow tail off LLM calls: a backup only when the first copy falls behind, inside a budget you set."""

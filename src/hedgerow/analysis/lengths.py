"""How long a call usually takes for the length of its answer: a start and a pace, from medians, so that stalls don't move them.

The line goes through the medians of the lower and the upper third by output tokens (Tukey's resistant line, Exploratory
Data Analysis 1977, ch. 5).
"""

import numpy as np

from hedgerow.analysis.calls import Column, Flags

__all__ = ["expected_total_s", "slowdowns"]

LEAST_CALLS = 9
LEAST_START_SHARE = 0.05  # of the median response: a line that starts below zero says too little about short answers


def expected_total_s(total_s: Column, output_tokens: Column, counted: Flags) -> tuple[Column, float]:
    """What each call would usually take, and how much of that passes before the answer begins. counted: calls to learn from."""
    total, output = total_s[counted], output_tokens[counted]
    if not len(total):
        return np.full(len(total_s), np.nan), float("nan")
    middle = float(np.median(total))
    low, high = np.quantile(output, [1 / 3, 2 / 3])
    if len(total) < LEAST_CALLS or high <= low:
        return np.full(len(total_s), middle), LEAST_START_SHARE * middle
    lower, upper = output <= low, output >= high
    run = float(np.median(output[upper]) - np.median(output[lower]))
    rise = float(np.median(total[upper]) - np.median(total[lower]))
    pace = max(rise / run, 0.0)
    start = max(float(np.median(total - pace * output)), LEAST_START_SHARE * middle)
    expected = start + pace * output_tokens
    level = float(np.median(total / expected[counted]))
    return expected * level, start * level


def slowdowns(total_s: Column, output_tokens: Column, counted: Flags) -> Column:
    """Each call's time ÷ what one of its length usually takes; without output tokens, ÷ the median. NaN where it failed."""
    known = counted & ~np.isnan(output_tokens) & (output_tokens > 0)
    if known.sum() <= 0.5 * counted.sum():
        middle = float(np.median(total_s[counted])) if counted.any() else float("nan")
        return np.where(counted, total_s / middle, np.nan)
    usual = float(np.median(output_tokens[known]))
    output = np.where(np.isnan(output_tokens) | (output_tokens <= 0), usual, output_tokens)
    expected, _ = expected_total_s(total_s, output, counted)
    return np.where(counted, total_s / expected, np.nan)

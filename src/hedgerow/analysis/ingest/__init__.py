"""Foreign logs into one table of calls: found by content, read a row at a time, every row that is left out counted and named."""

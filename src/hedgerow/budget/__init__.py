"""What hedging may cost: a bucket that every request fills a little and every backup empties."""

"""The same requests sent in several ways, side by side: how the arms run, and what may be concluded from them."""

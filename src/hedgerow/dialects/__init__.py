"""Pure wire knowledge, one file per API. No I/O, no clock; see base.py for what a dialect must know."""

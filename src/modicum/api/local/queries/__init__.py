"""Private queries on a ledger: planned, then run under a reservation."""

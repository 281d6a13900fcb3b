"""Following a log: each record checked, folded and charged; snapshots of that."""

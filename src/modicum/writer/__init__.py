"""One writer for the many clients of a ledger."""

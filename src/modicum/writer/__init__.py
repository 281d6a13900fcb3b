"""Serving: one ledger, many clients, and one writer."""

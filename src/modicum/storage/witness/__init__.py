"""Witnesses of a ledger's head: registers outside of its store."""

"""Statements about a ledger: HTML, JSON, records for a registry."""

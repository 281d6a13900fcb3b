"""Statements about a ledger for people: HTML, JSON, records for a registry."""

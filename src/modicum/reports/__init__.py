"""Statements about a ledger for people outside: an HTML page, a registry's records."""

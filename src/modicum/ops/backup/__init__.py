"""Copies of a ledger: made while it is used, and put in place of one that is lost."""

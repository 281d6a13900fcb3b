"""Decisions: the charge of every rule, and whether it allows a release."""

"""Policies under test: their tests, and history under another policy."""

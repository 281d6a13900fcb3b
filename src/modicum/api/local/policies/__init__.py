"""Policies tried out: their tests, and the history under another one."""

"""The state: a pure fold of the log."""

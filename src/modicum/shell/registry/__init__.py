"""The registry: tokens and sessions, beside the log."""

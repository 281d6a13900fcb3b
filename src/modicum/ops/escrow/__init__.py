"""The equipment of an escrow: a vault, sandboxes, and rows in memory for an engine."""

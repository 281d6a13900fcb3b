"""What an escrow runs on: a vault, sandboxes, and rows in memory for an engine."""

"""Alternatives: what would pass instead of what was denied."""

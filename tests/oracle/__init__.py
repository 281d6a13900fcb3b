"""Slow, obvious reference implementations: what would be right."""

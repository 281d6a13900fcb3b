"""Deciding: what every rule was charged, and whether it lets a release pass."""

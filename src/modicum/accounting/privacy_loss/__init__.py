"""Certified privacy loss distributions: integers that dominate, on every machine."""

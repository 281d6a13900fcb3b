"""Alternatives: allowed variants of a denied release."""

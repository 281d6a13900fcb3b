"""Proof: a log checked from nothing, claims about it, and bundles to take along."""

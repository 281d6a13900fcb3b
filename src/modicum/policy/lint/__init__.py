"""Semantic errors of a well-formed policy, and warnings."""

"""Implication: does one predicate follow from another, and if not, a counterexample."""

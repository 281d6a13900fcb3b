"""Decisions as grants that a data layer enforces."""

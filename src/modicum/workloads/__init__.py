"""Seeded generators of believable work: organizations and their releases."""

from modicum.workloads.acme_health import past_releases

__all__ = ["past_releases"]

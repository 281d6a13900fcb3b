"""Changes: what another policy tightens, loosens, adds and removes."""

from modicum.policy.changes.differences import Differences, differences

__all__ = ["Differences", "differences"]

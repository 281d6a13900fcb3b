"""The Hasse diagram of a policy's rules: which lies below which, and its layout."""

from modicum.policy.hasse.diagram import Hasse, hasse
from modicum.policy.hasse.export import to_dot

__all__ = ["Hasse", "hasse", "to_dot"]

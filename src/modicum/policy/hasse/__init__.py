"""The Hasse diagram of a policy's rules: which lies below which, and a drawing."""

from modicum.policy.hasse.diagram import Hasse, hasse
from modicum.policy.hasse.export import to_dot, to_svg

__all__ = ["Hasse", "hasse", "to_dot", "to_svg"]

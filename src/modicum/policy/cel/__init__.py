"""The CEL subset: from text to a checked predicate of our own."""

from modicum.policy.cel.lowering import parse_predicate

__all__ = ["parse_predicate"]

"""Reading what a policy declares: names, units, people and the population."""

from modicum.policy.declarations.header import Declarations, read_declarations
from modicum.policy.declarations.schema import read_level

__all__ = ["Declarations", "read_declarations", "read_level"]

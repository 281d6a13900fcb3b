"""The policy language: from a reviewable file to rules.

`parse_policy` reads the file, `compile_policy` multiplies base policies by
extensions, and `match` tells which rules a mechanism falls under.
"""

from modicum.policy.compile import CompiledPolicy, compile_policy
from modicum.policy.match import matching
from modicum.policy.model import Policy
from modicum.policy.parse import parse_policy
from modicum.policy.rules import Rule

__all__ = [
    "CompiledPolicy",
    "Policy",
    "Rule",
    "compile_policy",
    "matching",
    "parse_policy",
]

"""The policy language: from a reviewable file to rules.

`parse_policy` reads the file, `compile_policy` multiplies base policies by extensions
and determines which rules are binding, and the `RuleSet` finds those that match a
mechanism.
"""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.policy.compiler import CompiledPolicy, compile_policy
    from modicum.policy.model import Policy
    from modicum.policy.parser import parse_policy
    from modicum.policy.rules import Rule, RuleSet

__all__ = [
    "CompiledPolicy",
    "Policy",
    "Rule",
    "RuleSet",
    "compile_policy",
    "parse_policy",
]

__getattr__ = facade(
    __name__,
    {
        "modicum.policy.compiler": "CompiledPolicy compile_policy",
        "modicum.policy.model": "Policy",
        "modicum.policy.parser": "parse_policy",
        "modicum.policy.rules": "Rule RuleSet",
    },
)

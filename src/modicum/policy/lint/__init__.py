"""What is wrong with a policy that reads well: errors of meaning, and warnings."""

from modicum.policy.lint.mistakes import refuse_mistakes
from modicum.policy.lint.warnings import warnings_of

__all__ = ["refuse_mistakes", "warnings_of"]

"""The formats as JSON Schema, for editors; the parser stays the authority."""

from modicum.policy.json_schema.policy import policy_schema
from modicum.policy.json_schema.release import release_schema

__all__ = ["policy_schema", "release_schema"]

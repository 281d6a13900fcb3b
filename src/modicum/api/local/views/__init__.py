"""Responses of commands and the service, as plain JSON (docs/reference/json.md)."""

"""What commands and the service answer, as plain JSON (docs/reference/json.md)."""

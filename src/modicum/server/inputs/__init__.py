"""Reading what is sent to the server: exactly, and nothing unknown."""

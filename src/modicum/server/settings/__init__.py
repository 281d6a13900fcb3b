"""The settings file of a server."""

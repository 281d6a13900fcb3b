"""Libraries in separate environments: worker processes with a line protocol."""

"""The log: events, their encoding, and the hash chain."""

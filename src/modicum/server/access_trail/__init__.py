"""The access trail of a server: what is noted, stored, and shipped."""

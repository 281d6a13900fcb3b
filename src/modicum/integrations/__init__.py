"""Other libraries and commands, under a reservation."""

"""Other libraries and commands, held to what is reserved for them."""

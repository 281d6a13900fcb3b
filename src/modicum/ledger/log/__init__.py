"""The log: what happened, how it is written down, and the chain that binds it."""

"""The escrow's verbs, and what they need from the world."""

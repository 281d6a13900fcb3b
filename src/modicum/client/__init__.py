"""A ledger that a server keeps, through the verbs of a workspace."""

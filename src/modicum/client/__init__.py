"""A ledger that a server keeps, through the operations of a workspace."""

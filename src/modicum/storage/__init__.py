"""Storage: where ledgers live, and how turns are taken there."""

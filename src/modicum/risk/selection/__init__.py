"""How an epsilon is chosen: each way under its own name, with its own claim.

The default reads no rows. What reads rows without noise is advice for the controller;
what reads them with noise says what the choice itself costs.
"""

"""The methods of choosing an epsilon, each with its own claim.

The default reads no rows. Methods that read rows without noise are advice for the
controller; those that read them with noise state the cost of the choice itself.
"""

"""Which requests of a round to accept: the problem, and how it is solved."""

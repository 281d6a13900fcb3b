"""One round, planned on the balances of the real ledger.

`beforehand` says which requests cannot be accepted whatever else is, `asking` what the
others ask of which cells, `constraining` which rules decide, `limiting` what their
cells have left, and `round_problem` makes a `Problem` of all that. `open_coordinates`
lets engines work on it. `planned` lets an allocator choose, and decides every choice as
the ledger will; `telling` says what stood in a request's way.
"""

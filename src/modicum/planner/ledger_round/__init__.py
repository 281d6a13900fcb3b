"""One round, planned on the balances of the real ledger.

`beforehand` finds requests that can never be accepted, `asking` the demand of the
others by cell, `constraining` the binding rules, `limiting` the remainders of their
cells, and `round_problem` builds a `Problem` from all that. `open_coordinates` lets
engines work on it. `planned` lets an allocator choose, and decides every choice as the
ledger will; `telling` gives the obstacles of a request.
"""

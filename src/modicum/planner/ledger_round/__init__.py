"""One round, planned on the balances of the real ledger.

`presolve` finds the binding rules, and the requests that can never be accepted;
`requests` the demand of the others by cell. `problem` builds a `Problem` from that and
the remainders of the cells, and `coordinates` lets engines work on it. `plan` lets an
allocator choose, and decides every choice as the ledger will; `cancellation` lets it be
watched and ended. `denial_reasons` gives the obstacles of a request.
"""

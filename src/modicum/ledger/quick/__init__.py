"""Many decisions under one policy: the balances of the ledger, as matrices.

What `modicum.ledger.decide` says with Python's own integers, this room says with
arrays, in microseconds. The two agree on every release; neither rounds anything.
"""

from modicum.ledger.quick.engines import Engine, EngineOf, numba_engine
from modicum.ledger.quick.layout import Asked
from modicum.ledger.quick.quick_balances import QuickBalances

__all__ = ["Asked", "Engine", "EngineOf", "QuickBalances", "numba_engine"]

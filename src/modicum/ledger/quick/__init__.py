"""Many decisions under one policy: the balances of the ledger, as matrices.

What `modicum.ledger.deciding` says of one release after the other, this room says with
matrices, in microseconds. The two agree on every release; neither rounds anything.
"""

from modicum.ledger.quick.engines import Engine, EngineOf, numba_engine
from modicum.ledger.quick.layout import Asked
from modicum.ledger.quick.quick_balances import QuickBalances

__all__ = ["Asked", "Engine", "EngineOf", "QuickBalances", "numba_engine"]

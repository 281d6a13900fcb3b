"""Many decisions under one policy: the balances of the ledger as matrices.

Decides with matrices, in microseconds, what `modicum.ledger.decision` decides one
release after the other. The two agree on every release; neither rounds anything.
"""

from modicum.ledger.bulk.layout import ReleaseRows
from modicum.ledger.bulk.matrix_balances import (
    Engine,
    EngineOf,
    QuickBalances,
    numba_engine,
)

__all__ = ["Engine", "EngineOf", "QuickBalances", "ReleaseRows", "numba_engine"]

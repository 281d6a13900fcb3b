"""Private SQL: from the text of a query to mechanisms with a price.

A query is parsed (`parsing`), its contribution is bounded in several privacy units at
once (`bounding`), each aggregate becomes a mechanism with a sensitivity per unit
(`lowering`), and the exact part is written for an engine (`exact`). Nothing here reads
a row, draws noise or spends: engines and samplers are elsewhere.
"""

"""Private SQL: from the text of a query to mechanisms with a price.

A query is parsed (`parser`), its contribution is bounded in several privacy units at
once (`contribution_bounds`), each aggregate becomes a mechanism with a sensitivity per
unit (`compiler`), and the exact part is written for an engine (`sql`). Nothing here
reads a row, draws noise or spends: engines and samplers are elsewhere.
"""

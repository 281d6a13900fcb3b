"""The exact part of a query as SQL, one syntax tree for every engine.

`statements` writes which rows are read, which of them caps keep (`caps`), and their
counts and sums, over columns of the declared types (`columns`). Literals become nodes
of the tree, never pieces of text.
"""

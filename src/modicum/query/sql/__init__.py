"""The exact part of a query as SQL, one syntax tree for every engine.

`statements` writes which rows are read, which of them caps keep, and their counts and
sums, over columns of the declared types (`reading`); the results of engines are read
back (`answers`). Literals become nodes of the tree, never pieces of text.
"""

"""The exact part of a query as SQL, one syntax tree for every engine.

What rows are read, which of them caps keep, and what is counted and summed of them is
written here (`statements`), over columns whose types are what is declared (`reading`),
and what engines answer is read back (`answers`). Literals become nodes of the tree,
never pieces of text.
"""

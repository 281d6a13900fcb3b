"""Joint losses under general neighboring relations.

`Engine` computes the joint loss of many releases when neighbors differ by a record, a
few attributes, a group, a user's day or month, or a user; see `target`.
"""

"""Joint losses under general neighboring relations.

`Engine` answers how much many releases reveal together when neighbors differ by a
record, a few attributes, a group, a user's day or month, or a user; see `targets`.
"""

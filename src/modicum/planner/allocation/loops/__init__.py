"""Loops that numba compiles. Import these only to use them.

Every function takes and fills plain arrays, allocates little, and is called often.
"""

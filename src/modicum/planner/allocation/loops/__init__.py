"""Loops compiled by numba. Import these only to use them.

Every function fills plain arrays, allocates little, and is called often.
"""

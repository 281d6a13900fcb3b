"""Errors, documents with places, exact numbers, canonical bytes.

Nothing here knows about privacy; nothing here does I/O.
"""

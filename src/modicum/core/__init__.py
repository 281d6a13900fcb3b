"""The ground floor: errors, marked documents, exact numbers, canonical bytes.

Nothing here knows about privacy; nothing here does I/O.
"""

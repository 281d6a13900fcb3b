"""The UCI Adult table: the RDR paper's queries of it, and made-up people like its.

The table itself is not shipped; `examples/adult/fetch.py` gets it.
"""

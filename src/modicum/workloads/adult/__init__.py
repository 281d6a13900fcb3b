"""The UCI Adult table: the RDR paper's queries of it, and synthetic people like its.

The table itself is not included; `examples/adult/fetch.py` downloads it.
"""

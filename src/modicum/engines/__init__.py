"""The exact part of a query on DuckDB or Spark, and its noise.

Engines read tables and return integers (`protocol`); `sources` locates the tables.
Errors inside of an engine may quote rows, so their messages are dropped.
"""

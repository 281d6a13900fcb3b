"""The exact part of a query on DuckDB or Spark, and its noise.

They read tables and answer whole numbers (`protocol`); where the tables lie is said in
`sources`. What goes wrong inside of an engine may quote rows, so its words are dropped.
"""

"""Which rows caps keep, over Arrow batches of any engine.

Spark sends `rows` and `arrays` to its workers as they are: they import nothing of
modicum that is not there.
"""

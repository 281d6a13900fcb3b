"""Expressions: functions of one row, and what is known of their values.

An expression is total: no row makes it fail. Where SQL would, its value is NULL.
Numbers are exact: each is an integer number of steps, of a size that follows from the
expression, within limits that follow from the declared bounds. So no engine rounds or
overflows, and what one row can add to a sum is known.
"""

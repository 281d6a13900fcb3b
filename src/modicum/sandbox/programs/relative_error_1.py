"""relative_error@1: how far the numbers of one table lie from those of another.

Rows are matched by their keys. The error of a pair is |one - true| divided by the
greater of |true| and a floor, and 1 if it is more; a row that only one table has is 0
in the other. The score is the median or the mean of the errors. None if there are no
rows, or if a table has two with the same keys.

True is a public table, where one is given. Else it is the exact answers, `tables`, and
what is held against them are the private ones, `reference`.
"""

import math
import statistics
from fractions import Fraction

NUMBER_MAX = 1e100


def score(tables, arguments, reference):
    """Return the median or mean of the relative errors, in 0 to 1, or None."""
    asked, true = pair(tables, arguments, reference)
    if asked is None or true is None or not asked.keys() | true.keys():
        return None
    floor = float(Fraction(arguments["floor"]))
    errors = [
        error(asked.get(key, 0.0), true.get(key, 0.0), floor)
        for key in asked.keys() | true.keys()
    ]
    if arguments["over"] == "median":
        return round(statistics.median(errors), 9)
    return round(math.fsum(errors) / len(errors), 9)


def error(one, true, floor):
    """Return the relative error of a number, at most 1."""
    return min(abs(one - true) / max(abs(true), floor), 1.0)


def pair(tables, arguments, reference):
    """Return the numbers that are asked about, and those they are held against."""
    keys, column, name = arguments["keys"], arguments["column"], arguments["table"]
    here = by_key(chosen(tables, name), keys, column)
    public = arguments["public"]
    if public is None:
        return by_key(chosen(reference or {}, name), keys, column), here
    return here, {
        tuple(row[:-1]): number(float(Fraction(row[-1]))) for row in public["rows"]
    }


def by_key(table, keys, column):
    """Return the numbers of a column by the keys of their rows, or None."""
    if table is None or not {*keys, column} <= set(table["columns"]):
        return None
    at = {name: place for place, name in enumerate(table["columns"])}
    found = {
        tuple(row[at[key]] for key in keys): row[at[column]] for row in table["rows"]
    }
    if len(found) < len(table["rows"]):
        return None
    numbers = {key: number(cell) for key, cell in found.items()}
    return {key: value for key, value in numbers.items() if value is not None}


def chosen(tables, name):
    """Return a table by its name, or the only one there is; None if there is none."""
    if name is None and len(tables) == 1:
        return next(iter(tables.values()))
    return tables.get(name)


def number(cell):
    """Return a cell as a float of bounded size; None if it is not a number."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return None
    bounded = min(max(cell, -NUMBER_MAX), NUMBER_MAX)
    return None if math.isnan(bounded) else float(bounded)

"""top_k_overlap@1: how many of the largest k of one table are those of another.

Rows are matched by their keys. The score is the share of the k rows with the largest
numbers that are among the largest k of the other table too. Of equal numbers the one
goes first whose keys come first. Where the other table has less than k rows, all of
them are its largest. None if it has none, or if a table has two with the same keys.

The other table is a public one, where one is given. Else it is the exact answers,
`tables`, and what is held against them are the private ones, `reference`.
"""

import math
from fractions import Fraction

NUMBER_MAX = 1e100


def score(tables, arguments, reference):
    """Return the share of the largest that both have, in 0 to 1, or None."""
    one, other = pair(tables, arguments, reference)
    if one is None or not other:
        return None
    wanted = largest(other, arguments["k"])
    found = largest(one, arguments["k"])
    return round(len(wanted & found) / len(wanted), 9)


def largest(numbers, k):
    """Return the keys of the k largest numbers."""
    ordered = sorted(
        numbers, key=lambda key: (-numbers[key], [str(one) for one in key])
    )
    return set(ordered[:k])


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

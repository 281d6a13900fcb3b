"""rank_correlation@1: whether two lists of numbers have the same order (Spearman).

The numbers are two columns of one table, or one column of two tables; then rows are
matched by their keys, and those count that both tables have. Equal numbers share the
mean of their ranks. The score is the correlation of the ranks. None if there are less
than 3 pairs, if all numbers of a list are equal, or if a table has two rows with the
same keys.

The second table is a public one, where one is given. Else it is the exact answers,
`tables`, and what is held against them are the private ones, `reference`.
"""

import math
from fractions import Fraction

NUMBER_MAX = 1e100


def score(tables, arguments, reference):
    """Return the correlation of ranks, in -1 to 1, or None."""
    if arguments["right"] is not None:
        pairs = within(chosen(tables, arguments["table"]), arguments)
    else:
        one, other = pair(tables, arguments, reference)
        if one is None or other is None:
            return None
        pairs = [(one[key], other[key]) for key in one.keys() & other.keys()]
    if len(pairs) < 3:
        return None
    return correlation(
        *(ranks(numbers) for numbers in zip(*sorted(pairs), strict=True))
    )


def within(table, arguments):
    """Return the pairs of numbers in two columns of a table."""
    names = [arguments["column"], arguments["right"]]
    if table is None or not set(names) <= set(table["columns"]):
        return []
    places = [table["columns"].index(name) for name in names]
    found = [tuple(number(row[place]) for place in places) for row in table["rows"]]
    return [numbers for numbers in found if None not in numbers]


def ranks(numbers):
    """Return the rank of each number; equal ones share the mean of theirs."""
    ordered = sorted(numbers)
    first, last = {}, {}
    for place, one in enumerate(ordered):
        first.setdefault(one, place)
        last[one] = place
    return [(first[one] + last[one]) / 2 for one in numbers]


def correlation(left, right):
    """Return the correlation of two lists of ranks; None if one does not vary."""
    middle = (len(left) - 1) / 2
    both = math.fsum(
        (x - middle) * (y - middle) for x, y in zip(left, right, strict=True)
    )
    spreads = [math.fsum((x - middle) ** 2 for x in one) for one in (left, right)]
    if not all(spreads):
        return None
    return round(both / math.sqrt(spreads[0]) / math.sqrt(spreads[1]), 9)


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

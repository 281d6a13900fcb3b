"""chi_square@1: whether two things are independent in a table of counts (Pearson).

The counts of rows with the same two values are added up; a sum below 0, as noise makes
them, is set to 0. Lines without counts are left out. The score is the p-value of the
chi-square test without a correction for continuity. None if less than two lines are
left on either side.

The test knows nothing of noise: noise looks like dependence, and makes p too small.
"""

import math

import numpy as np
from scipy.special import chdtrc

NUMBER_MAX = 1e100
LINES_MAX = 1000


def score(tables, arguments, reference):
    """Return the p-value of the test of independence, in 0 to 1, or None."""
    counts = contingency(chosen(tables, arguments["table"]), arguments)
    if counts is None:
        return None
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return None
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    down, across, total = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    expected = np.outer(down / total, across)
    with np.errstate(all="ignore"):
        distance = np.where(expected > 0, (counts - expected) ** 2 / expected, 0.0)
    return round(float(chdtrc(freedom, distance.sum())), 9)


def contingency(table, arguments):
    """Return the counts as a matrix, none below 0; None if there is none."""
    names = [arguments["rows"], arguments["columns"], arguments["count"]]
    if table is None or not set(names) <= set(table["columns"]):
        return None
    at = [table["columns"].index(name) for name in names]
    cells = [[row[place] for place in at] for row in table["rows"]]
    lines = [sorted({repr(cell[side]) for cell in cells}) for side in (0, 1)]
    if max(len(lines[0]), len(lines[1])) > LINES_MAX:
        return None
    place = [{value: which for which, value in enumerate(one)} for one in lines]
    found = np.zeros((len(lines[0]), len(lines[1])))
    for row, column, count in cells:
        found[place[0][repr(row)], place[1][repr(column)]] += number(count) or 0.0
    return np.maximum(found, 0.0)


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

"""balanced_accuracy@1: how often a classifier is right, each class counting alike.

Rows with the same features go into the same fold. For each fold the model is fitted to
the rows of the others, and asked about these. Rows count by their weight: a weight
below 0 is 0. The score is the mean over classes of the share of the weight of
a class about which it is right; None if there is nothing to learn or to hold back.
"""

import math
import warnings
from fractions import Fraction

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

MODELS = {
    "sklearn:LogisticRegression": LogisticRegression,
    "sklearn:GaussianNB": GaussianNB,
    "sklearn:DecisionTreeClassifier": DecisionTreeClassifier,
    "sklearn:RandomForestClassifier": RandomForestClassifier,
}
FIXED = {
    "sklearn:LogisticRegression": {"max_iter": 500},
    "sklearn:DecisionTreeClassifier": {"random_state": 0},
    "sklearn:RandomForestClassifier": {"random_state": 0},
}
CLASSES_MAX = 20
TEXTS_MAX = 500
NUMBER_MAX = 1e100
MATRIX_MAX = 20_000_000
WEIGHT_MIN = 1e-9


def score(tables, arguments, reference):
    """Return the mean over classes of what share of each is found, or None."""
    table = chosen(tables, arguments["table"])
    if table is None:
        return None
    labels, features, weights = cases(table, arguments)
    classes = sorted(set(labels))
    fold = folds(features, arguments["cv"])
    x = encoded(features)
    if fold is None or x is None or not 2 <= len(classes) <= CLASSES_MAX:
        return None
    y = np.array([classes.index(label) for label in labels])
    found, w = predictions(x, y, weights, fold, arguments)
    shares = [
        w[(y == one) & (found == y)].sum() / w[y == one].sum()
        for one in range(len(classes))
    ]
    return round(float(np.mean(shares)), 9)


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


def cases(table, arguments):
    """Return the target, the features and the weight of each row that has them."""
    at = {name: place for place, name in enumerate(table["columns"])}
    target, weight = arguments["target"], arguments["weight"]
    names = arguments["features"]
    if names is None:
        names = [name for name in at if name not in (target, weight)]
    found = []
    if {target, *names, *([weight] if weight else [])} <= at.keys():
        for row in table["rows"]:
            wanted = targeted(row[at[target]], arguments["at_least"])
            heavy = (number(row[at[weight]]) or 0.0) if weight else 1.0
            if wanted is not None and heavy > 0:  # A negative count is none.
                found.append((wanted, [row[at[name]] for name in names], heavy))
    found.sort(key=repr)  # So that the order of rows says nothing.
    return tuple(zip(*found, strict=True)) or ((), (), ())


def targeted(cell, at_least):
    """Return the class of a row: what is in the cell, or whether it is large."""
    if at_least is None:
        return None if cell is None else f"{type(cell).__name__} {cell}"
    value = number(cell)
    return None if value is None else str(value >= float(Fraction(at_least)))


def folds(features, cv):
    """Return the fold of each row, whatever order they have; None for too few."""
    texts = [repr(row) for row in features]
    different = sorted(set(texts))
    if len(different) < cv:
        return None
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(different))
    place = {different[which]: turn % cv for turn, which in enumerate(order)}
    return np.array([place[text] for text in texts])


def encoded(features):
    """Return a matrix: numbers standardized, one column for each text; or None."""
    columns = []
    for cells in zip(*features, strict=True):
        values = [number(cell) for cell in cells]
        if all(v is not None or c is None for v, c in zip(values, cells, strict=True)):
            known = [value for value in values if value is not None]
            mean = math.fsum(known) / len(known) if known else 0.0
            column = np.array([mean if v is None else v for v in values]) - mean
            columns.append(column / (column.std() or 1.0))
        else:
            texts = np.array([str(cell) for cell in cells])
            different = sorted(set(texts.tolist()))
            if len(different) > TEXTS_MAX:
                return None
            columns += [texts == one for one in different]
    if not columns or len(columns) * len(features) > MATRIX_MAX:
        return None
    return np.column_stack(columns).astype(float)


def predictions(x, y, weights, fold, arguments):
    """Return what rows of other folds predict for each row."""
    w = np.maximum(np.array(weights) / max(weights), WEIGHT_MIN)
    found = np.zeros_like(y)
    for one in range(arguments["cv"]):
        rest, asked = fold != one, fold == one
        if len(set(y[rest].tolist())) == 1:
            found[asked] = y[rest][0]
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = model(arguments).fit(x[rest], y[rest], w[rest] / w[rest].mean())
            found[asked] = fitted.predict(x[asked])
    return found, w


def model(arguments):
    """Return the model that is asked for, with its parameters and a fixed seed."""
    given = {
        name: float(Fraction(value)) if isinstance(value, str) else value
        for name, value in arguments["parameters"].items()
    }
    kind = MODELS[arguments["model"]]
    fixed = FIXED.get(arguments["model"], {})
    return kind(**fixed, **given)

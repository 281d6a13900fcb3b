"""The public risk of a question, before a row is read: from column names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.risk.arguments import Number, above_zero, argument
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Choice
from modicum.risk.indicator import Form
from modicum.risk.influence.expressions import clamped
from modicum.risk.measurement.data import ControllerData
from modicum.risk.measurement.facts import BoundsGiven, public_bounds, unbounded_sums
from modicum.risk.measurement.query_checks import conversions, must_fit
from modicum.risk.measurement.study import Risk
from modicum.risk.noise import (
    NORMS,
    Calibration,
    Mechanism,
    Noise,
    NoiseGiven,
)
from modicum.risk.profile import Influence
from modicum.risk.question import Question, read_question
from modicum.risk.sensitivity import PublicBounds, public_sensitivity


def unseen_risk(  # noqa: PLR0913 - each has a default that is a decision
    data: object,
    query: str,
    *,
    unit: str | None = None,
    mechanism: Mechanism = "laplace",
    epsilons: Sequence[Number] = PUBLISHED,
    delta: Number | None = None,
    sensitivity: Number | None = None,
    bounds: BoundsGiven = None,
    rows_max: int | None = None,
    dimensions: int | None = None,
    form: Form = "published",
    calibration: Calibration = "exact",
    engine: str = "duckdb",
) -> Risk:
    """Return the risk of a query on empty tables; no row is read.

    A choice from public facts is the same for any table; and every refusal here also
    applies to any rows.
    """
    given = NoiseGiven(mechanism, sensitivity, delta, dimensions, calibration)
    with ControllerData(data, engine, typed=False) as opened:
        question = read_question(query, opened.engine.columns(), unit)
        converted: tuple[str, ...] = ()
        if not opened.typed_by_rows:  # A refusal must not depend on rows.
            must_fit(opened.engine, question)
            converted = conversions(opened.engine, question)
    public = public_bounds(bounds, rows_max, question)
    nobody = np.zeros(0, dtype=np.int64)
    nothing = Influence(0, np.zeros(0), np.zeros(1, dtype=np.int64), nobody)
    return Risk(
        query=query,
        question=clamped(question, public),
        influence=nothing,
        noise=_noise(question, public, given),
        private=(),
        unbounded=(*unbounded_sums(question, public), *converted),
        typed_by_rows=opened.typed_by_rows,
        candidates=checked(epsilons),
        form=form,
    )


def choose_publicly(data: object, query: str, tau: Number, **facts: Any) -> Choice:
    """Return the choice that does not depend on rows."""
    return unseen_risk(data, query, **facts).choose(tau)


def _noise(question: Question, public: PublicBounds, given: NoiseGiven) -> Noise:
    if given.sensitivity is None:
        width = public_sensitivity(question, public, NORMS[given.mechanism])
    else:
        width = above_zero("the sensitivity", given.sensitivity, by="sensitivity")
    dimensions = given.dimensions
    if dimensions is None:
        if question.keys or question.obstacle:
            raise _unknown(
                "the number of values in the answer depends on the rows",
                f"give its maximum ({argument('dimensions')})",
            )
        dimensions = len(question.measures)
    if given.mechanism == "gaussian" and given.delta is None:
        raise _unknown(
            "Gaussian noise has a delta", f"give {argument('delta')} such as 1e-6"
        )
    return replace(given, sensitivity=width, dimensions=dimensions).noise()


def _unknown(reason: str, remedy: str) -> InputError:
    return InputError(
        Problem(
            Code.NOT_BOUNDED,
            f"the choice cannot be released: {reason}",
            help=remedy,
        )
    )

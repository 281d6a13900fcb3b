"""A query as text: its mechanisms, their losses, and the errors of its answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Literal

from msgspec import Struct

from modicum.core.rationals import brief
from modicum.query.aggregates import center_of
from modicum.query.answer_expressions import released_in
from modicum.query.compiler import CompiledQuery, Line
from modicum.query.contribution_bounds import UNBOUNDED, Moves
from modicum.query.estimates import (
    lines_of,
    measured,
    quantile_of,
    step_of,
    strays_of,
)
from modicum.query.expressions.analysis import facts_of
from modicum.query.marginals import set_of
from modicum.query.model import Aggregate, Query, Released
from modicum.query.sensitivity import Norms, root


def derivation(compiled: CompiledQuery) -> list[str]:
    """Return why each mechanism costs each unit what it does, line by line."""
    return [
        *_caps(compiled),
        *_moves(compiled),
        *_losses(compiled),
        *_consistent(compiled),
        *_postprocessing(compiled.request.query),
    ]


def _consistent(compiled: CompiledQuery) -> Iterator[str]:
    """Yield what measuring several sets of keys together gains."""
    for name, marginals in compiled.marginals.items():
        query = compiled.request.query
        gains = ", ".join(
            f"{', '.join(query.keys[key].name for key in keys) or 'in total'}:"
            f" {marginals.gain(set_of(keys)):.3g}"
            for keys in query.sets
        )
        yield (
            f"{name}: consistent by least squares; its variance, as a multiple of that"
            f" of measuring each set of keys by itself: {gains}"
        )


def _postprocessing(query: Query) -> Iterator[str]:
    """Yield what is computed of noisy answers, and so costs nothing."""
    measured = [one.name for one in query.aggregates]
    for output in query.outputs:
        if output.value != Released(output.name):
            inside = ", ".join(released_in(output.value, measured)) or "no aggregate"
            yield f"{output.name}: computed of noisy answers, at no cost: {inside}"
    if query.having is not None:
        inside = ", ".join(released_in(query.having, measured)) or "keys"
        yield f"HAVING: decided by noisy answers, at no cost: {inside}"
    clauses = {"ORDER BY": query.order, "LIMIT": query.limit is not None,
               "OFFSET": query.offset}  # fmt: skip
    given = ", ".join(word for word, value in clauses.items() if value)
    if given:
        yield f"{given}: applied to noisy answers, at no cost"


def computed(compiled: CompiledQuery, line: Line) -> Mapping[str, Fraction]:
    """Return the cost of a mechanism for each bounded unit: ε or ρ, exactly.

    Args:
        compiled: The query.
        line: One of its mechanisms.
    """
    return {
        unit: _loss(compiled.request.noise, norms, line.scale)
        for unit, norms in line.norms.items()
    }


def _loss(noise: str, norms: Norms, scale: Fraction) -> Fraction:
    if noise == "laplace":
        return max(norms.l1, 1) / scale
    moved = Fraction(*root(max(norms.l2_squared, 1)))
    return moved * moved / (2 * scale * scale)


def _caps(compiled: CompiledQuery) -> Iterator[str]:
    caps = compiled.plan.caps
    if caps:
        kept = ", then ".join(f"{_rows(cap.rows)} of each {cap.unit}" for cap in caps)
        verb = "is" if caps[-1].rows == 1 else "are"
        yield f"of the rows that are read, at most {kept} {verb} kept"


def _moves(compiled: CompiledQuery) -> Iterator[str]:
    for unit, moves in compiled.moves.items():
        yield f"one {unit}: {_moved(moves)}{_together(compiled, unit)}"


def _moved(moves: Moves) -> str:
    if not moves.bounded:
        return "the number of kept rows that it changes has no bound"
    if not moves.going:
        one = moves.coming == 1
        return (
            "adds or removes at most 1 row"
            if one
            else f"adds or removes at most {moves.coming} rows"
        )
    return (
        f"adds at most {_rows(moves.coming)} and removes at most {moves.going}: rows"
        " under the cap may replace removed ones"
    )


def _together(compiled: CompiledQuery, unit: str) -> str:
    shape = None if compiled.request.query.sets else compiled.shapes.get(unit)
    most = compiled.moves[unit].coming
    if shape is None or shape.together > most or shape.groups == 1:
        return ""
    return f"; at most {shape.together} of them in one group"


def _losses(compiled: CompiledQuery) -> Iterator[str]:
    noise = compiled.request.noise
    for line in compiled.lines:
        for unit, loss in computed(compiled, line).items():
            norms, scale = line.norms[unit], brief(line.scale)
            name = f"{line.name}, one {unit}{_in_steps(compiled, line)}"
            if noise == "laplace":
                yield (
                    f"{name}: L1 sensitivity {norms.l1},"
                    f" eps = {norms.l1} / {scale} = {brief(loss)}"
                )
            else:
                yield (
                    f"{name}: L2 sensitivity √{norms.l2_squared},"
                    f" rho = {norms.l2_squared} / (2 · {scale}²) = {brief(loss)}"
                )
    selection = compiled.selection
    if selection is not None:
        for unit, eps in selection.eps.items():
            yield (
                f"{selection.name}, one {unit}: noise of scale"
                f" {brief(selection.scale)} on the number of ids,"
                f" threshold {selection.threshold}:"
                f" eps {brief(eps)}, delta {brief(selection.delta[unit])}"
            )


def _in_steps(compiled: CompiledQuery, line: Line) -> str:
    """Return the step in which a sum is counted, where that is not 1."""
    statistic = line.statistic
    if statistic.value is None or statistic.kind not in ("total", "squares"):
        return ""
    step = facts_of(statistic.value, compiled.request.tables).step
    if step == 1:
        return ""
    squared = "²" if statistic.kind == "squares" else ""
    return f", in steps of {brief(step)}{squared}"


def _rows(number: int) -> str:
    return f"{number} row" if number == 1 else f"{number} rows"


class Expected(Struct, frozen=True):
    """The expected error of an answer, as far as known before rows are read.

    Attributes:
        aggregate: Its name.
        keys: By which keys; None if there is one set of them.
        half_width: Half the width of its interval, or of its basis.
        per: The basis of `half_width`: the `answer` itself; that of an average, or of a
            variance, is at most about this over the number of `rows`; for a standard
            deviation it is that of its `variance` instead; that of a quantile is given
            in `ranks`, as a number of rows, on the widest side.
    """

    aggregate: str
    keys: tuple[str, ...] | None
    half_width: Fraction
    per: Literal["answer", "rows", "variance", "ranks"]

    def by_keys(self) -> str:
        """Return the keys of the groups as text; nothing if there is one set."""
        if self.keys is None:
            return ""
        return f" by {', '.join(self.keys)}" if self.keys else " in total"

    def as_text(self) -> str:
        """Return it as text, for the plan of a query."""
        shown = brief(self.half_width)
        if self.per == "rows":
            return f"± {shown} / rows of the group"
        if self.per == "variance":
            return f"± {shown} / rows of the group, for its square"
        if self.per == "ranks":
            return f"± {shown} ranks, and one bin"
        return f"± {shown}"


def errors_of(compiled: CompiledQuery, confidence: Fraction) -> tuple[Expected, ...]:
    """Return the expected errors of the answers. It reads no row.

    Args:
        compiled: The query.
        confidence: How sure each interval is, above 0 and below 1.

    Returns:
        For each aggregate, in their order, its half-width by each set of keys.
    """
    query, error = compiled.request.query, 1 - confidence
    return tuple(
        Expected(
            one.name,
            tuple(query.keys[key].name for key in keys) if query.sets else None,
            *_expected(one, compiled, keys, error),
        )
        for one in query.aggregates
        for keys in query.key_sets
    )


def _expected(
    aggregate: Aggregate,
    compiled: CompiledQuery,
    keys: tuple[int, ...],
    error: Fraction,
) -> tuple[Fraction, Literal["answer", "rows", "variance", "ranks"]]:
    """Return a half-width, and what it is per."""
    if aggregate.function == "quantile":
        return max(quantile_of(aggregate, compiled, keys, error).strays), "ranks"
    lines = lines_of(aggregate, compiled, keys)
    strays = {
        kind: strays_of(line, compiled, keys, error / len(lines))
        for kind, line in lines.items()
    }
    step = step_of(aggregate, compiled)
    if len(lines) == 1:
        (only,) = strays.values()
        return only * step, "answer"
    center = center_of(measured(aggregate, compiled))
    statistic = lines["total"].statistic
    farthest = max(abs(statistic.low - center), abs(statistic.high - center))
    if aggregate.function == "avg":
        moved = strays["total"] + farthest * strays["rows"]
        return moved * step, "rows"
    moved = (
        strays["squares"]
        + 2 * farthest * strays["total"]
        + 3 * farthest**2 * strays["rows"]
    )
    return moved * step**2, "variance" if aggregate.function == "stddev" else "rows"


def headline(release: str, compiled: CompiledQuery) -> str:
    """Return a one-line summary of a query without its values."""
    number = len(compiled.lines) + (compiled.selection is not None)
    mechanisms = "one mechanism" if number == 1 else f"{number} mechanisms"
    return f"query {release}: {mechanisms} with {compiled.request.noise} noise"


def explanation(release: str, compiled: CompiledQuery, confidence: Fraction) -> str:
    """Return the cost of a query for each unit, and the accuracy of its answers.

    Args:
        release: The id of the release that it is.
        compiled: The query as mechanisms.
        confidence: How sure its intervals are.

    Returns:
        Lines of text; they follow from declarations, and from no row.
    """
    mechanisms = (f"  {one}" for one in _mechanisms(compiled))
    lines = (headline(release, compiled), *mechanisms, *outlook(compiled, confidence))
    return "\n".join(lines)


def outlook(compiled: CompiledQuery, confidence: Fraction) -> list[str]:
    """Return the number of groups, the errors of answers, and the reasons.

    Args:
        compiled: The query as mechanisms.
        confidence: How sure its intervals are.
    """
    number = compiled.answer_groups
    groups = "noisy discovery" if number == UNBOUNDED else str(number)
    sure = brief(100 * confidence)
    return [
        f"groups of the answer: {groups}",
        *(
            f"{one.aggregate}{one.by_keys()}: {one.as_text()} with {sure} % confidence"
            for one in errors_of(compiled, confidence)
        ),
        "",
        "why:",
        *(f"  {line}" for line in derivation(compiled)),
    ]


def _mechanisms(compiled: CompiledQuery) -> Iterator[str]:
    measure = "eps" if compiled.request.noise == "laplace" else "rho"
    for line in compiled.lines:
        losses = ", ".join(
            f"{measure} {brief(loss)} per {unit}"
            for unit, loss in computed(compiled, line).items()
        )
        scale = brief(scale_in_answers(compiled, line))
        yield f"{line.name}: noise of scale {scale}; {losses}"
    selection = compiled.selection
    if selection is not None:
        losses = ", ".join(
            f"eps {brief(eps)}, delta {brief(selection.delta[unit])} per {unit}"
            for unit, eps in selection.eps.items()
        )
        yield f"{selection.name}: noise of scale {brief(selection.scale)}; {losses}"


def scale_in_answers(compiled: CompiledQuery, line: Line) -> Fraction:
    """Return the scale of a mechanism's noise, in the units of the answer."""
    statistic, factor = line.statistic, Fraction(1)
    if statistic.value is not None and statistic.kind in ("total", "squares"):
        step = facts_of(statistic.value, compiled.request.tables).step
        factor = step if statistic.kind == "total" else step * step
    return line.scale * factor

"""How a query's losses come about, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from modicum.core.rationals import brief
from modicum.query.aggregates import column_of
from modicum.query.compiler import Line, Lowered
from modicum.query.contribution_bounds import Moves
from modicum.query.sensitivity import Norms, root


def derivation(lowered: Lowered) -> list[str]:
    """Return why each mechanism costs each unit what it does, line by line.

    Args:
        lowered: The query.
    """
    return [*_caps(lowered), *_moves(lowered), *_losses(lowered)]


def computed(lowered: Lowered, line: Line) -> Mapping[str, Fraction]:
    """Return what a mechanism costs each unit that is bounded: ε or ρ, exactly.

    Args:
        lowered: The query.
        line: One of its mechanisms.
    """
    return {
        unit: _loss(lowered.asked.noise, norms, line.scale)
        for unit, norms in line.norms.items()
    }


def _loss(noise: str, norms: Norms, scale: Fraction) -> Fraction:
    if noise == "laplace":
        return max(norms.l1, 1) / scale
    moved = Fraction(*root(max(norms.l2_squared, 1)))
    return moved * moved / (2 * scale * scale)


def _caps(lowered: Lowered) -> Iterator[str]:
    caps = lowered.plan.caps
    if caps:
        kept = ", then ".join(f"{_rows(cap.rows)} of each {cap.unit}" for cap in caps)
        verb = "is" if caps[-1].rows == 1 else "are"
        yield f"of the rows that are read, at most {kept} {verb} kept"


def _moves(lowered: Lowered) -> Iterator[str]:
    for unit, moves in lowered.moves.items():
        yield f"one {unit}: {_moved(moves)}{_together(lowered, unit)}"


def _moved(moves: Moves) -> str:
    if not moves.bounded:
        return "nothing bounds how many of the kept rows it changes"
    if not moves.going:
        one = moves.coming == 1
        return (
            "1 row comes, or goes"
            if one
            else f"{moves.coming} rows come, or as many go"
        )
    come, go = (
        ("comes" if moves.coming == 1 else "come"),
        ("goes" if moves.going == 1 else "go"),
    )
    return (
        f"{_rows(moves.coming)} {come} and {moves.going} {go}: caps let others move up"
    )


def _together(lowered: Lowered, unit: str) -> str:
    shape = lowered.shapes.get(unit)
    most = lowered.moves[unit].coming
    if shape is None or shape.together > most or shape.groups == 1:
        return ""
    return f"; at most {shape.together} of them in one group"


def _losses(lowered: Lowered) -> Iterator[str]:
    noise = lowered.asked.noise
    for line in lowered.lines:
        for unit, loss in computed(lowered, line).items():
            norms, scale = line.norms[unit], brief(line.scale)
            name = f"{line.statistic.name}, one {unit}{_in_steps(lowered, line)}"
            if noise == "laplace":
                yield (
                    f"{name}: moves {norms.l1} in L1, so"
                    f" eps = {norms.l1} / {scale} = {brief(loss)}"
                )
            else:
                yield (
                    f"{name}: moves √{norms.l2_squared} in L2, so"
                    f" rho = {norms.l2_squared} / (2 · {scale}²) = {brief(loss)}"
                )
    selection = lowered.selection
    if selection is not None:
        for unit, eps in selection.eps.items():
            yield (
                f"{selection.name}, one {unit}: noise of scale"
                f" {brief(selection.scale)} on the number of ids,"
                f" told from {selection.threshold} on:"
                f" eps {brief(eps)}, delta {brief(selection.delta[unit])}"
            )


def _in_steps(lowered: Lowered, line: Line) -> str:
    """Return what a sum is counted in here, where that is not 1."""
    statistic = line.statistic
    if statistic.column is None or statistic.kind not in ("total", "squares"):
        return ""
    step = column_of(statistic.column, lowered.asked.tables).step
    if step == 1:
        return ""
    squared = "²" if statistic.kind == "squares" else ""
    return f", in steps of {brief(step)}{squared}"


def _rows(number: int) -> str:
    return f"{number} row" if number == 1 else f"{number} rows"

"""The largest part of the population, or of time, that a release may still read.

Parts are kept or left out as a whole where the ledger does not distinguish them, and
are divided along its own segments where they are denied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from modicum.api.local.alternatives.axes import DaysAxis, PeopleAxes
from modicum.api.local.alternatives.denied_boxes import Parted, denying_spaces
from modicum.api.local.alternatives.trials import Trials, full_rules
from modicum.api.local.explanation.release_text import Written, name_of, with_mechanisms
from modicum.api.local.explanation.remedies import Fit
from modicum.ledger.cells.axes import Box

#: Maximum number of variants; what is still undivided then is left out as a whole.
TRIES_MAX = 250
#: A lower limit where the ledger has many segments: variants times boxes.
_BOXES_TRIED_MAX = 60_000
#: The minimum of that limit.
_TRIES_MIN = 4
#: Maximum number of omitted parts listed.
_NAMED = 4


class Axes(Protocol):
    """Division of the data along the varied dimension."""

    @property
    def whole(self) -> Box:
        """The box of everything."""
        ...

    def helpless(self) -> str:
        """Return why no smaller part can help; empty if one may."""
        ...

    def meets(self, place: int, box: Box) -> bool:
        """Return whether a mechanism reads anything in a box."""
        ...

    def parted(self) -> Parted | None:
        """Return where rules deny it, and where not; None if that is not known."""
        ...

    def halves(self, box: Box) -> Sequence[Box]:
        """Return two boxes that a box is divided into; none if it is not divided."""
        ...

    def probe(self, box: Box) -> Box | None:
        """Return a first piece of a box that no cut divides; None if there is none.

        If it is denied, so is the rest of the box.
        """
        ...

    def bisected(self, box: Box) -> Sequence[Box]:
        """Return two boxes that a box without cuts is divided into."""
        ...

    def within(self, place: int, boxes: Sequence[Box]) -> Any:
        """Return the data that a mechanism reads within boxes; None for all."""
        ...

    def texts(self, boxes: Sequence[Box]) -> list[str]:
        """Return boxes for display, as few as make up the same."""
        ...


def larger_part(trials: Trials, vary: str, chosen: frozenset[int]) -> Fit:
    """Return the release with the largest part of the data that is allowed.

    No omitted value or period could be added back.
    """
    vocabulary = trials.head_view.balances.compiled.policy.vocabulary
    if vary in vocabulary.labels:
        return trials.nothing(vary, f"`{vary}` is a label of this policy")
    if trials.verdict.allowed:
        why = "all of it is allowed: nothing is left out"
        return trials.fit(vary, trials.base, (), (why,))
    axes: Axes = (
        PeopleAxes(trials, chosen) if vary == "where" else DaysAxis(trials, chosen)
    )
    reason = axes.helpless()
    if reason:
        return trials.nothing(vary, reason)
    if not trials.goes_on():  # Dividing its data counts as work, too.
        return trials.nothing(vary)
    return _Narrowing(trials, vary, chosen, axes).fit()


class _Narrowing:
    """Keeps as many parts as are allowed together."""

    def __init__(
        self, trials: Trials, vary: str, chosen: frozenset[int], axes: Axes
    ) -> None:
        self._trials = trials
        self._vary = vary
        self._chosen = chosen
        self._axes = axes
        self._first = trials.tried
        self._tries_max = _tries_max(trials)
        self._kept: list[Box] = []
        self._left_out: list[Box] = []
        self._undivided = self._unsaid = False

    def fit(self) -> Fit:
        """Return the release with the kept parts."""
        groups = self._to_settle()
        while groups:
            groups += reversed(self._settled(groups.pop()))
        # It was allowed when the last of it was kept.
        variant = self._variant(self._kept) if self._kept else None
        if variant is None:
            why = ("no part of it is allowed", *self._why())
            return self._trials.nothing(self._vary, *why)
        return self._trials.fit(self._vary, variant, self._changes(), self._why())

    def _to_settle(self) -> list[Sequence[Box]]:
        """Return the parts still to try, as a whole, the first last."""
        parted = self._axes.parted()
        if parted is None:
            return [[self._axes.whole]]
        if parted.is_lost:
            self._left_out = parted.rest
            return [parted.free] if parted.free else []
        return [one for one in (parted.rest, parted.free) if one]

    def _settled(self, boxes: Sequence[Box]) -> list[Sequence[Box]]:
        """Keep boxes if they pass with those before; else return them in pieces."""
        if self._passes(boxes):
            self._kept += boxes
            return []
        if self._is_over:
            self._undivided = True
            self._left_out += boxes
            return []
        if len(boxes) > 1:
            half = len(boxes) // 2
            return [boxes[:half], boxes[half:]]
        (box,) = boxes
        pieces = self._divided(box)
        if not pieces:
            self._left_out.append(box)
        return [[one] for one in pieces if self._meets(one)]

    @property
    def _is_over(self) -> bool:
        tried = self._trials.tried - self._first
        return tried >= self._tries_max or not self._trials.goes_on()

    def _meets(self, box: Box) -> bool:
        return any(self._axes.meets(place, box) for place in self._chosen)

    def _passes(self, boxes: Sequence[Box]) -> bool:
        if self._is_over:
            return False
        variant = self._variant([*self._kept, *boxes])
        verdict = None if variant is None else self._trials.decision(variant)
        self._unsaid |= verdict is None
        return verdict is not None and verdict.allowed

    def _divided(self, box: Box) -> Sequence[Box]:
        pieces = self._axes.halves(box)
        if pieces:
            return pieces
        first = self._axes.probe(box)
        if first is None or not self._passes([first]):
            return ()
        return self._axes.bisected(box)

    def _variant(self, boxes: Sequence[Box]) -> Written | None:
        """Return the release about some boxes only; None if nothing is left of it."""
        key, base = self._vary, self._trials.base
        mechanisms: list[Written] = []
        for place, one in enumerate(base["mechanisms"]):
            own = {name: value for name, value in one.items() if name != key}
            if place not in self._chosen:
                part = one.get(key, base.get(key))
            elif not any(self._axes.meets(place, box) for box in boxes):
                continue
            else:
                part = self._axes.within(place, boxes)
            named = {"name": name_of(one, place)}  # Its position may have changed.
            mechanisms.append(named | own | ({} if part is None else {key: part}))
        if not mechanisms:
            return None
        rest = {name: value for name, value in base.items() if name != key}
        return with_mechanisms(rest, mechanisms)

    def _changes(self) -> Iterator[str]:
        texts = self._axes.texts(self._left_out)
        left = len(texts) - _NAMED
        more = f" and {left} more parts" if left > 0 else ""
        yield f"without {'; '.join(texts[:_NAMED])}{more}"
        for place, one in enumerate(self._trials.base["mechanisms"]):
            if place in self._chosen and not any(
                self._axes.meets(place, box) for box in self._kept
            ):
                yield f"without {name_of(one, place)}, for which nothing is left"

    def _why(self) -> Iterator[str]:
        yield from (f"with all of it, {line}" for line in self._denied())
        if self._undivided and not self._trials.ended_early:
            yield (
                f"tried {self._tries_max} variants and stopped: parts not yet"
                " divided are left out entirely"
            )
        if self._unsaid:
            yield "parts that need too many boxes were left out"

    def _denied(self) -> Iterator[str]:
        yield from full_rules(self._trials.verdict)


def _tries_max(trials: Trials) -> int:
    """Return how many variants are decided: the finer the ledger, the fewer."""
    family = trials.head_view.balances.family
    units = {space.unit for _, space in denying_spaces(trials)}
    boxes = sum(len(family(unit).segments.then().owner) for unit in units)
    return max(_TRIES_MIN, min(TRIES_MAX, _BOXES_TRIED_MAX // max(boxes, 1)))

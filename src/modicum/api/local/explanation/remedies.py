"""What would pass instead of what was denied: fits, options and explanations."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Self

from msgspec import Struct, structs

from modicum.api.schema import release as schema
from modicum.api.schema.ledger import Head
from modicum.api.schema.release import DenialDetails, RuleLines
from modicum.api.schema.shape import plain

if TYPE_CHECKING:
    from modicum.api.local.explanation.contributions import Contributor

#: So many of the releases that filled a cell are told.
TOLD_MAX = 5
#: What a search says that ended before it had looked at everything.
ENDED_EARLY = (
    "the search ended early, because there are many mechanisms: other"
    " changes may be allowed"
)


class Fit(Struct, frozen=True):
    """The closest variant of a release that every rule lets pass, or why there is none.

    If the search ended early, it is the closest that was found until then.

    Attributes:
        vary: What was varied.
        release: The variant as it would stand in a file, to be submitted; None if no
            variant passes.
        changes: How it differs, line by line.
        why: Why no closer one passes, line by line.
        seq: The number of the ledger entry that it was found on.
        head: The hash of that entry.
        ended_early: Whether the search ended before everything was tried, as a release
            of many mechanisms takes too long: a closer variant may pass, or any.
    """

    vary: str
    release: Mapping[str, object] | None
    changes: tuple[str, ...]
    why: tuple[str, ...]
    seq: int
    head: str
    ended_early: bool = False

    @property
    def found(self) -> bool:
        """Whether there is one."""
        return self.release is not None

    @property
    def text(self) -> str:
        """The text of a file that describes the variant; empty if there is none."""
        from modicum.api.local.explanation.release_text import release_text

        return "" if self.release is None else release_text(self.release)

    def explain(self) -> str:
        """Return what was found in plain text."""
        none = "nothing found" if self.ended_early else "nothing fits"
        what = "fits" if self.found else none
        head = f"{what}, varying {self.vary} (at entry {self.seq})"
        lines = (*self.changes, *self.why)
        return "\n".join((head, *(f"  {line}" for line in lines)))

    @property
    def view(self) -> schema.Fit:
        """The same, as answers show it."""
        return schema.Fit(
            vary=self.vary,
            found=self.found,
            release=self.text or None,
            changes=tuple(self.changes),
            why=tuple(self.why),
            ended_early=self.ended_early,
            ledger=Head(seq=self.seq, head=self.head),
        )

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md)."""
        found: dict[str, object] = plain(self.view)
        return found


class Option(Struct, frozen=True):
    """One change of a denied release after which every rule lets it pass.

    Attributes:
        kind: What is changed: `noise`, `epsilon`, `rho`, `mu`, `where`, `periods`,
            `attribute`, `label`, `mechanism` or `wait`.
        title: The change, in a few words.
        release: The changed release as it would stand in a file.
        why: What it does, line by line.
        only_if: What must be true for it to be open at all; empty if nothing.
        not_before: The first day on which it passes, if that is not today.
    """

    kind: str
    title: str
    release: Mapping[str, object]
    why: tuple[str, ...]
    only_if: str = ""
    not_before: str = ""

    @property
    def text(self) -> str:
        """The text of a file that describes the changed release."""
        from modicum.api.local.explanation.release_text import release_text

        return release_text(self.release)

    @property
    def view(self) -> schema.Option:
        """The same, as answers show it."""
        return schema.Option(
            kind=self.kind,
            title=self.title,
            release=self.text,
            why=tuple(self.why),
            only_if=self.only_if or None,
            not_before=self.not_before or None,
        )


class Options(tuple[Option, ...]):
    """Changes of a denied release after which it passes, in order.

    Attributes:
        ended_early: Whether the search ended before everything was tried, as a release
            of many mechanisms takes too long: further changes may help.
    """

    ended_early: bool

    def __new__(
        cls, found: Iterable[Option] = (), *, ended_early: bool = False
    ) -> Self:
        """Return options as a tuple that tells whether it is all of them."""
        options = super().__new__(cls, found)
        options.ended_early = ended_early
        return options


class FullCell(Struct, frozen=True):
    """The cell in which a rule denies a release, and who filled it.

    Attributes:
        rule: The id of the rule.
        cell: The cell in words; empty if the rule has one cell only.
        rho_left: How much rho Gaussian noise may still cost there, in ledger units;
            None if the rule looks at each release alone.
        coordinate: What its spenders are measured by.
        spenders: The releases that are charged there, the largest first.
    """

    rule: str
    cell: str
    rho_left: int | None
    coordinate: int
    spenders: tuple[Contributor, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Who spent most there, and what is left, in words."""
        from modicum.api.local.explanation.contributions import (
            contributors_text,
            undated_text,
        )
        from modicum.api.local.explanation.denial_text import room_text

        if not self.spenders:
            return ()
        cause = undated_text(self.spenders, TOLD_MAX)
        named = contributors_text(self.spenders, self.coordinate, TOLD_MAX)
        rho = room_text(self.rho_left or 0)
        return (
            *([cause] if cause else ()),
            f"spent by {named}",
            f"remaining for a Gaussian mechanism: rho = {rho}",
        )

    @property
    def view(self) -> schema.FullCell:
        """The same, as answers show it, with the largest spenders."""
        from modicum.api.local.explanation.contributions import spenders_view
        from modicum.api.local.explanation.denial_text import amount

        rho = self.rho_left
        return schema.FullCell(
            rule=self.rule,
            cell=self.cell or None,
            rho_left=None if rho is None else amount(rho),
            spenders=spenders_view(self.spenders[:TOLD_MAX], self.coordinate),
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the log tells about a denial.

    Attributes:
        cells: The cells that deny, one for each denying rule; the first of them.
        fit: What would pass instead.
        seq: The number of the ledger entry that it was found on.
    """

    cells: tuple[FullCell, ...]
    fit: Fit
    seq: int

    @property
    def closest(self) -> tuple[str, ...]:
        """What would pass instead, in words."""
        if not self.fit.found:
            return tuple(self.fit.why[:TOLD_MAX])
        changes = self.fit.changes[:TOLD_MAX]
        lines = tuple(f"would be allowed with: {change}" for change in changes)
        return (*lines, ENDED_EARLY) if self.fit.ended_early else lines

    @property
    def words(self) -> DenialDetails:
        """All of it in words, to stand among those of the decision."""
        rules = (RuleLines(rule=one.rule, lines=one.lines) for one in self.cells)
        return DenialDetails(rules=tuple(rules), closest=self.closest)

    @property
    def named(self) -> frozenset[str]:
        """The ids of the releases that it speaks of, besides the one that was asked."""
        return frozenset(one.release for cell in self.cells for one in cell.spenders)

    def hiding(self, releases: Container[str], name: str) -> Explanation:
        """Return it without the ids of some releases."""
        cells = tuple(
            structs.replace(
                cell,
                spenders=tuple(
                    structs.replace(one, release=name)
                    if one.release in releases
                    else one
                    for one in cell.spenders
                ),
            )
            for cell in self.cells
        )
        return replace(self, cells=cells)

    @property
    def view(self) -> schema.Explanation:
        """The same, as answers show it."""
        cells = tuple(one.view for one in self.cells)
        return schema.Explanation(cells=cells, fit=self.fit.view)


class Reconsideration(Protocol):
    """Looks at a release again, at the ledger's present head."""

    def largest_fit(self, vary: str, mechanism: str | None) -> Fit:
        """Return the closest variant that passes."""
        ...

    def options(self) -> Options:
        """Return the changes after which it passes."""
        ...

    def explanation(self) -> Explanation | None:
        """Return what the log tells about the denial; None if it passes now."""
        ...

"""Remedies of denials: fits, options and explanations."""

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

#: Maximum number of spenders of a cell listed.
TOLD_MAX = 5
#: The note of a search that ended early.
ENDED_EARLY = (
    "the search ended early, because there are many mechanisms: other"
    " changes may be allowed"
)


class Fit(Struct, frozen=True):
    """The closest variant of a release that every rule allows, or why there is none.

    If the search ended early, it is the closest found so far.

    Attributes:
        vary: The varied parameter.
        release: The variant as in a file, to be submitted; None if no variant is
            allowed.
        changes: Its differences, line by line.
        why: Why no closer one passes, line by line.
        seq: The number of the ledger entry of the result.
        head: The hash of that entry.
        ended_early: Whether the search reached its limit, as it may for a release of
            many mechanisms: a closer variant may be allowed, or any.
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
        """Return the result in plain text."""
        none = "nothing found" if self.ended_early else "nothing fits"
        what = "fits" if self.found else none
        head = f"{what}, varying {self.vary} (at entry {self.seq})"
        lines = (*self.changes, *self.why)
        return "\n".join((head, *(f"  {line}" for line in lines)))

    @property
    def view(self) -> schema.Fit:
        """The public form."""
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
    """One change of a denied release after which every rule allows it.

    Attributes:
        kind: The changed parameter: `noise`, `epsilon`, `rho`, `mu`, `where`,
            `periods`, `attribute`, `label`, `mechanism` or `wait`.
        title: The change, in brief.
        release: The changed release as in a file.
        why: Its effect, line by line.
        only_if: The condition under which it is an option; empty if there is none.
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
        """The public form."""
        return schema.Option(
            kind=self.kind,
            title=self.title,
            release=self.text,
            why=tuple(self.why),
            only_if=self.only_if or None,
            not_before=self.not_before or None,
        )


class Options(tuple[Option, ...]):
    """Changes of a denied release after which it is allowed, in order.

    Attributes:
        ended_early: Whether the search reached its limit, as it may for a release of
            many mechanisms: further changes may help.
    """

    ended_early: bool

    def __new__(
        cls, found: Iterable[Option] = (), *, ended_early: bool = False
    ) -> Self:
        """Return options as a tuple with `ended_early`."""
        options = super().__new__(cls, found)
        options.ended_early = ended_early
        return options


class FullCell(Struct, frozen=True):
    """The cell in which a rule denies a release, and its spenders.

    Attributes:
        rule: The id of the rule.
        cell: The cell as text; empty if the rule has one cell only.
        rho_left: The rho left there for Gaussian noise, in ledger units; None if the
            rule looks at each release alone.
        coordinate: The measure of its spenders.
        spenders: The releases that are charged there, the largest first.
    """

    rule: str
    cell: str
    rho_left: int | None
    coordinate: int
    spenders: tuple[Contributor, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The largest spenders and the remainder, as text."""
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
        """The public form, with the largest spenders."""
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
    """What the log shows about a denial.

    Attributes:
        cells: The cells that deny, one for each denying rule; the first of them.
        fit: The allowed variant.
        seq: The number of the ledger entry of the result.
    """

    cells: tuple[FullCell, ...]
    fit: Fit
    seq: int

    @property
    def closest(self) -> tuple[str, ...]:
        """The allowed variants, as text."""
        if not self.fit.found:
            return tuple(self.fit.why[:TOLD_MAX])
        changes = self.fit.changes[:TOLD_MAX]
        lines = tuple(f"would be allowed with: {change}" for change in changes)
        return (*lines, ENDED_EARLY) if self.fit.ended_early else lines

    @property
    def details(self) -> DenialDetails:
        """The complete text, to be shown with the decision."""
        rules = (RuleLines(rule=one.rule, lines=one.lines) for one in self.cells)
        return DenialDetails(rules=tuple(rules), closest=self.closest)

    @property
    def named(self) -> frozenset[str]:
        """The ids of the mentioned releases other than the denied one."""
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
        """The public form."""
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
        """Return what the log shows about the denial; None if it is allowed now."""
        ...

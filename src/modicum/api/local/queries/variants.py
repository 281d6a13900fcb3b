"""Remedies for a denied query: changes of its file, each decided.

The noise of a query follows from its loss, so its scale cannot be chosen. Here variants
of the *query file* are read, priced and decided like any query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Struct, structs

from modicum.api.local.alternatives.largest_fit import RUNGS, number_on, rung_below
from modicum.api.local.alternatives.options import DeniedRelease
from modicum.api.local.alternatives.trials import Trials, full_rules
from modicum.api.local.decision import Decision
from modicum.api.local.explanation.budget_fit import least
from modicum.api.local.explanation.release_text import Written, with_number, written
from modicum.api.local.explanation.remedies import Explanation, Fit, Option, Options
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.core.rationals import number_spelled
from modicum.query.query_file import QueryFile, read_query_file

#: A smaller loss is searched for over this many powers of ten.
_DECADES: Final = 12
#: Parameters of a release's noise, mapped to a query's loss.
_LOSS: Final = ("loss", "noise")
#: The heading fields that queries and releases share.
_PARTS: Final = ("where", "periods")
_HEADINGS: Final = (*_PARTS, "label", "wait")


def of_query(query: QueryFile, decision: Decision) -> Decision:
    """Return a decision that looks again at its query, not only at its release."""
    if not isinstance(decision.again, DeniedRelease):
        return decision
    again = DeniedQuery(query, decision.again)
    return msgspec.structs.replace(decision, again=again)


class DeniedQuery(Struct, frozen=True):
    """A denied query and the ledger that decided.

    Attributes:
        query: The query.
        denied: The release of the query.
    """

    query: QueryFile
    denied: DeniedRelease

    def largest_fit(self, vary: str, mechanism: str | None) -> Fit:
        """Return the closest variant of the query file that would pass now."""
        if vary in _LOSS and mechanism is None:
            return self._with_loss()
        fit = self.denied.largest_fit("noise" if vary == "loss" else vary, mechanism)
        if fit.release is None:
            return fit
        variant = self._as_query(fit.release) if vary in _PARTS else None
        with self.denied.lend() as head_view:
            trials = Trials(head_view, self.query.described)
            if variant is not None and self._allows(trials, variant):
                return structs.replace(fit, release=variant)
            return trials.nothing(vary, "the mechanisms of a query are derived from it")

    def options(self) -> Options:
        """Return the changes of the query file after which it would pass now."""
        fit, of_release = self._with_loss(), self.denied.options()
        with self.denied.lend() as head_view:
            trials = Trials(head_view, self.query.described)
            found = [*_as_option(fit), *self._with_other_headings(trials, of_release)]
        ended = (fit, of_release, trials)
        return Options(found, ended_early=any(one.ended_early for one in ended))

    def explanation(self) -> Explanation | None:
        """Return what the log shows about the denial; None if it is allowed now."""
        found = self.denied.explanation()
        if found is None:
            return None
        return replace(found, fit=self._closest())

    # --- inside ---

    def _closest(self) -> Fit:
        """Return the first variant that passes; else why the first kind does not."""
        ended = None
        for vary in ("loss", *_PARTS):
            fit = self.largest_fit(vary, None)
            if fit.found:
                return fit
            ended = fit if fit.ended_early else ended
        with self.denied.lend() as head_view:
            nothing = Trials(head_view, self.query.described).nothing(
                "one thing", "no single-parameter change would fit"
            )
        return ended or nothing

    def _with_other_headings(
        self, trials: Trials, of_release: Options
    ) -> Iterator[Option]:
        for one in of_release:
            if one.kind not in _HEADINGS:
                continue
            variant = self._as_query(one.release)
            later = one.kind == "wait"  # It was decided on that day.
            if variant is not None and (later or self._allows(trials, variant)):
                yield structs.replace(one, release=variant)

    def _with_loss(self) -> Fit:
        """Return the query with the largest loss that passes, in four digits."""
        loss = self.query.request.loss
        with self.denied.lend() as head_view:
            trials = Trials(head_view, self.query.described)
            known = head_view.standing(self.query.heading.id)
            if known is not None and known.status.counts:
                why = f"{known.id} already exists ({known.status.value}): no change is"
                return trials.nothing("loss", f"{why} needed")
            if trials.verdict.allowed:
                why = "it is allowed: no change is needed"
                return trials.nothing("loss", why)
            first = rung_below(loss)
            step = least(
                lambda one: self._allows(trials, self._at(first - one)),
                start=1,
                most=_DECADES * RUNGS,
            )
            if step is None:
                lines = full_rules(trials.verdict)
                return trials.nothing(
                    "loss", *(f"even at the minimum, {x}" for x in lines)
                )
            amount = number_on(first - step)
            unit, measure = self.query.request.unit, self._measure
            change = (
                f"loss of {unit}: {measure} {number_spelled(amount)} instead of"
                f" {number_spelled(loss)}"
            )
            return trials.fit("loss", self._at(first - step), (change,), ())

    @property
    def _measure(self) -> str:
        return "eps" if self.query.request.noise == "laplace" else "rho"

    def _at(self, rung: int) -> Written:
        """Return the query file with another loss."""
        path = ("query", "loss", self.query.request.unit, self._measure)
        return with_number(self._file, path, number_on(rung))

    @property
    def _file(self) -> Written:
        return written(self.query.file)

    def _as_query(self, release: Mapping[str, object]) -> Written | None:
        """Return the query file with the heading of a changed release.

        None if its mechanisms do not all read the same part: no query can express that.
        """
        heading = {
            key: value
            for key, value in release.items()
            if key not in ("mechanisms", "query")
        }
        mechanisms = release["mechanisms"]
        assert isinstance(mechanisms, list)  # It was decided.
        if len(mechanisms) != len(self.query.compiled.mechanisms()):
            return None
        for key in _PARTS:
            parts = [one[key] for one in mechanisms if key in one]
            if any(one != parts[0] for one in parts):
                return None
            if parts:
                heading[key] = parts[0]
        return {**heading, "query": self._file["query"]}

    def _allows(self, trials: Trials, variant: Written) -> bool:
        """Return whether a query file can be read and every rule allows it."""
        compiled = trials.head_view.balances.compiled
        policy = compiled.policy
        tables = self.query.request.tables
        try:
            found = read_query_file(
                from_python(variant),
                tables,
                policy.vocabulary,
                policy.digest,
                variant_of=self.query,
            )
        except InputError:
            return False
        return trials.allows(written(found.described))


def _as_option(fit: Fit) -> Iterator[Option]:
    """Yield a query with a smaller loss as an option, if there is one."""
    if fit.release is not None:
        why = (*fit.changes, *fit.why)
        yield Option("loss", "use a smaller loss", fit.release, why)

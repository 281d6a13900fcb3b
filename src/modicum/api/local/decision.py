"""A decision as people and programs see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from modicum.api.local.explanation import denial_text
from modicum.api.local.explanation.denial_text import unmatched_names
from modicum.api.local.explanation.remedies import (
    Explanation,
    Fit,
    Options,
    Reconsideration,
)
from modicum.api.schema import release as schema
from modicum.api.schema.ledger import Head
from modicum.api.schema.policy import Approval as ApprovalShape
from modicum.api.schema.policy import NamedPolicy
from modicum.api.schema.release import DecisionText, RuleLines
from modicum.api.schema.shape import plain
from modicum.core.errors import Code, ModicumError, Problem, UsageError
from modicum.ledger import Verdict
from modicum.policy.model import Approval

#: The rules to include in a decision.
LossesShown: TypeAlias = Literal["all", "denying", "none"]


def approval_text(approval: Approval) -> str:
    """Return the required approvers, as text."""
    roles = " or ".join(approval.roles)
    own = "" if approval.requester_may_approve else ", not the requester"
    return f"approval by {approval.need} of {roles}{own}"


class Decision(msgspec.Struct, frozen=True):
    """The decision about a release.

    Attributes:
        release: The release's id.
        verdict: The decision of each rule.
        status: The status of the release: `checked` (nothing was written), `denied`,
            `reserved`, `started`, `published` or `recorded`.
        policy_name: The policy it was decided by.
        policy_digest: Its digest.
        policy_active: Whether that is the ledger's active policy.
        seq: Number of the ledger entry it was decided on.
        head: Hash of that entry.
        expires_at: When the reservation expires; empty if there is none.
        retry: Whether the release was already accepted and nothing was written.
        notices: Further notes for the reader.
        approvals: The approvals needed before reservation.
        again: Looks at the release again, at the ledger's present head; None if it
            was decided in a batch.
    """

    release: str
    verdict: Verdict
    status: schema.Status
    policy_name: str
    policy_digest: str
    policy_active: bool
    seq: int
    head: str
    expires_at: str = ""
    retry: bool = False
    notices: tuple[str, ...] = ()
    approvals: tuple[Approval, ...] = ()
    again: Reconsideration | None = None

    @property
    def allowed(self) -> bool:
        """Whether the release may happen (or already may)."""
        return self.retry or self.status == "recorded" or self.verdict.allowed

    @property
    def blocking(self) -> tuple[str, ...]:
        """The ids of the rules that deny."""
        return () if self.retry else self.verdict.blocking

    @property
    def causes(self) -> tuple[str, ...]:
        """What denies it, for people: rules, and mechanisms that no rule limits."""
        return () if self.retry else self.verdict.causes

    @property
    def over_limit(self) -> tuple[str, ...]:
        """The ids of the rules that are beyond their limit with this release."""
        return self.verdict.blocking

    @property
    def losses(self) -> Mapping[str, schema.Loss]:
        """The loss of each matching rule, by rule id, in display amounts.

        They are computed when they are read; `verdict` has the exact sums.
        """
        return {one.rule: one for one in self._losses_view("all") or ()}

    @property
    def headline(self) -> str:
        """The decision in one line."""
        blocking, total = len(self.blocking), len(self.verdict.losses)
        if self.retry:
            return f"{self.release}: already exists ({self.status})"
        if self.status == "recorded":
            over = len(self.over_limit)
            found = f"; {over} of {total} matching rules over their limit"
            return f"{self.release}: recorded{found if over else ''}"
        if self.allowed:
            return f"ALLOW {self.release}: {total} of {total} matching rules hold"
        return f"DENY {self.release}: {'; '.join(self._denial(blocking, total))}"

    def _denial(self, blocking: int, total: int) -> Iterator[str]:
        if blocking:
            yield f"{blocking} of {total} matching rules deny"
        if self.verdict.unmatched:
            yield f"no rule limits {unmatched_names(self.verdict.unmatched)}"

    def explain(self, *, deep: bool = True) -> str:
        """Return the reasons in plain text, computed from public facts only.

        Args:
            deep: Whether to include, for a denial, the largest spenders and allowed
                variants; this reads the present log.
        """
        found = self.explanation() if deep else None
        added = None if found is None else found.details
        return msgspec.structs.replace(self.details, added=added).text()

    @property
    def details(self) -> DecisionText:
        """The decision as text, without what the log adds."""
        notes = (f"  note: {notice}" for notice in self._remarks)
        reasons = () if self.retry else self._reasons()
        approvals = () if self.retry else map(approval_text, self.approvals)
        needs = (f"  needs {one}" for one in approvals)
        return DecisionText(
            headline=self.headline, reasons=reasons, rest=(*needs, *notes)
        )

    def _reasons(self) -> tuple[RuleLines, ...]:
        return tuple(denial_text.reasons(self.verdict))

    def _losses_view(self, losses: LossesShown) -> tuple[schema.Loss, ...] | None:
        if losses == "none":
            return None
        return tuple(
            denial_text.loss_view(one)
            for one in self.verdict.losses
            if losses == "all" or not one.allowed
        )

    def largest_fit(self, vary: str = "noise", mechanism: str | None = None) -> Fit:
        """Return the closest variant that would be allowed now, or why there is none.

        Numbers have four significant digits, rounded such that the variant is allowed.
        A search that exceeds its limit ends early: then `ended_early` is set, and the
        result is the closest variant found so far, if any.

        Args:
            vary: `noise` (`sigma` or `scale` alone), `epsilon`, `rho` or `mu` of
                declared costs, `sampling_rate`, `where` or `periods`.
            mechanism: The name of the one mechanism to vary; by default all.

        Returns:
            A value with `release`, to be submitted, and `why`; and the ledger entry of
            the search.

        Raises:
            InputError: If that parameter or that mechanism does not exist.
            UsageError: If the release was decided in a batch.
        """
        return self._again().largest_fit(vary, mechanism)

    def options(self) -> Options:
        """Return the single changes after which it would be allowed now.

        Returns:
            A tuple; its `ended_early` is set if the search reached its limit, so that
            some changes were not tried.

        Raises:
            UsageError: If the release was decided in a batch.
        """
        return self._again().options()

    def _again(self) -> Reconsideration:
        if self.again is None:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    f"{self.release} was decided in a batch, and cannot be examined"
                    " further",
                    help="check it alone",
                )
            )
        return self.again

    def explanation(self) -> Explanation | None:
        """Return what the log shows about a denial at present: the largest spenders.

        Returns:
            None if it is allowed, or the ledger cannot be read now.
        """
        if self.allowed or self.again is None:
            return None
        try:
            return self.again.explanation()
        except ModicumError:  # The ledger is unavailable now; the reasons remain valid.
            return None

    @property
    def _remarks(self) -> tuple[str, ...]:
        rounded = () if self.retry else self.verdict.rounded
        return (
            *self.notices,
            *(
                f"the cells of {unit} are too many to separate: it is charged to more"
                " than it reads"
                for unit in rounded
            ),
        )

    def view(
        self, found: Explanation | None = None, *, losses: LossesShown = "all"
    ) -> schema.Decision:
        """Return the public form.

        Args:
            found: The explanation of a denial; None if it was not looked up.
            losses: Which rules to include: `all`, those that are `denying`, or `none`.
                Converting a loss to epsilon takes some hundredths of a second per rule;
                deciding needs no conversion.
        """
        return schema.Decision(
            decision="allow" if self.allowed else "deny",
            release=self.release,
            status=self.status,
            retry=self.retry,
            blocking=tuple(self.blocking),
            over_limit=tuple(self.over_limit),
            losses=self._losses_view(losses),
            uncovered=tuple(self.verdict.uncovered),
            unmatched=tuple(self.verdict.unmatched),
            rounded=tuple(self.verdict.rounded),
            policy=NamedPolicy(
                name=self.policy_name,
                digest=self.policy_digest,
                active=self.policy_active,
            ),
            ledger=Head(seq=self.seq, head=self.head),
            expires_at=self.expires_at or None,
            approvals=tuple(
                ApprovalShape(
                    need=one.need,
                    roles=tuple(one.roles),
                    requester_may_approve=one.requester_may_approve,
                )
                for one in self.approvals
            ),
            notices=tuple(self._remarks),
            explanation=None if found is None else found.view,
        )

    def to_dict(
        self, *, deep: bool = False, losses: LossesShown = "all"
    ) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md).

        Args:
            deep: As for `explain`; else `explanation` is None.
            losses: As for `view`.
        """
        found = self.explanation() if deep else None
        view: dict[str, object] = plain(self.view(found, losses=losses))
        return view

    def __repr__(self) -> str:
        return f"<Decision {self.headline}>"

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self.explain())}</pre>"

"""The verbs of those who govern a ledger."""

from __future__ import annotations

from modicum.api.local.governance.actions import PolicyOffice
from modicum.api.local.governance.annotations import Disclosure, annotate, disclose
from modicum.api.local.governance.release_office import ReleaseOffice
from modicum.ledger.log.events import DisclosureRecorded


class Governance(ReleaseOffice, PolicyOffice):
    """What people do who govern a ledger; each verb is an entry of its log.

    Args:
        ledger: The ledger.
        actor: Who acts.
    """

    def annotate(self, remark: str, *, about: str = "") -> int:
        """Add a remark to the log; it changes nothing.

        Args:
            remark: The remark, 1 to 2000 characters.
            about: The id of a release or a disclosure; empty for the ledger as a whole.

        Returns:
            The number of the entry.

        Raises:
            InputError: If there is no remark, or the ledger knows no such release or
                disclosure.
            UsageError: If there is no ledger.
        """
        return self._ledger.turn(lambda entry: annotate(entry, remark, about=about))

    def disclose(self, disclosure: Disclosure) -> tuple[DisclosureRecorded, int]:
        """Record that something was disclosed outside differential privacy.

        Args:
            disclosure: What was disclosed, in the words of the active policy.

        Returns:
            What was recorded, and the number of the entry.

        Raises:
            ConflictError: If its id was used before.
            InputError: With every mistake in it.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(lambda entry: disclose(entry, disclosure))

"""Which libraries a reservation may be used with, each loaded when it is asked for."""

from __future__ import annotations

from typing import Any

from modicum.workspace.reserved import Reserved
from modicum.workspace.using import Use


class Adapters:
    """The libraries that a reservation may be used with."""

    def opendp(self, use: Use, mechanism: Reserved) -> Any:
        """Return what runs OpenDP as one mechanism of a reservation.

        Args:
            use: The reservation in use.
            mechanism: The mechanism.

        Raises:
            UsageError: If OpenDP is not installed.
        """
        from modicum.shell.adapters.opendp_runs import OpenDP

        return OpenDP(use, mechanism)

    def opacus(self, use: Use, mechanism: Reserved) -> Any:
        """Return what trains by Opacus as one mechanism of a reservation.

        Args:
            use: The reservation in use.
            mechanism: The mechanism.

        Raises:
            UsageError: If Opacus is not installed.
        """
        from modicum.shell.adapters.opacus_training import Opacus

        return Opacus(use, mechanism)

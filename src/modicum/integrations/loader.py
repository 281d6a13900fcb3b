"""The libraries that may use a reservation, each loaded on demand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from modicum.api.ports.reservation import InUse, Reserved
    from modicum.engines.contributions import Contributions
    from modicum.engines.factory import SystemSecrets
    from modicum.engines.noise import NoiseSampler
    from modicum.engines.protocol import Engine


class Adapters:
    """The libraries that may use a reservation."""

    def opendp(self, use: InUse, mechanism: Reserved) -> Any:
        """Return a runner of OpenDP for one mechanism of a reservation."""
        from modicum.integrations.opendp_measurements import OpenDP

        return OpenDP(use, mechanism)

    def opacus(self, use: InUse, mechanism: Reserved) -> Any:
        """Return a trainer with Opacus for one mechanism of a reservation."""
        from modicum.integrations.opacus_training import Opacus

        return Opacus(use, mechanism)

    def tumult(
        self,
        use: InUse,
        mechanism: Reserved,
        python: str,
        settings: Mapping[str, str] | None,
    ) -> Any:
        """Return a runner of Tumult scripts for one mechanism of a reservation."""
        from modicum.integrations.tumult_script import Tumult

        return Tumult(use, mechanism, python, settings)

    def process(self) -> int:
        """Return an id that distinguishes this process from its forks."""
        return os.getpid()

    # --- private queries ---

    def engine(
        self,
        name: str,
        sources: Mapping[str, object],
        spark_master: str,
        *,
        spills: bool = True,
    ) -> Engine:
        """Return an engine that reads some tables; it is to be closed."""
        from modicum.engines.factory import EngineOptions, open_engine

        options = EngineOptions(master=spark_master, spills=spills)
        return open_engine(name, sources, options)

    def sampler(self) -> NoiseSampler:
        """Return the source of noise."""
        from modicum.engines.noise import NoiseSampler

        return NoiseSampler()

    def lots(self) -> SystemSecrets:
        """Return the source of secrets."""
        from modicum.engines.factory import SystemSecrets as SystemLots

        return SystemLots()

    def stream(self, folder: str | Path, *, new: bool) -> Contributions:
        """Return the folder of a query that is answered day by day, locked."""
        from modicum.engines.contributions import Contributions as Folder

        return Folder(folder, new=new)

"""What a server answered to generated calls, counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from samples.told import PREFIX


@dataclass
class Heard:
    """What was answered, over all rounds of calls.

    Attributes:
        statuses: How often each operation answered what.
        failures: What was wrong, the first of each kind, with how to repeat it.
    """

    statuses: defaultdict[str, Counter[int]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    _told: int = 0

    @property
    def calls(self) -> int:
        """How many generated calls were answered."""
        return sum(one.total() for one in self.statuses.values())

    def news(self) -> str:
        """Return how many calls there were, and what was wrong since the last time."""
        fresh = list(self.failures.items())[self._told :]
        self._told = len(self.failures)
        lines = [f"{' '.join(kind)}\n{text}" for kind, text in fresh]
        return "\n".join([f"{self.calls} calls, failures: {self._told}", *lines])

    def seldom_done(self, percent: int) -> list[str]:
        """Return the operations that were done less often than that.

        Args:
            percent: Of a hundred calls of an operation.
        """
        return sorted(
            label
            for label, counted in self.statuses.items()
            if 100 * sum(counted[one] for one in counted if 200 <= one < 300)
            < percent * counted.total()
        )

    def table(self) -> str:
        """Return how often each operation answered what."""
        columns = sorted({one for each in self.statuses.values() for one in each})
        lines = [f"{'':58}" + "".join(f"{one:6}" for one in columns)]
        for label, counted in sorted(self.statuses.items()):
            lines.append(
                f"{label.replace(PREFIX, ''):58}"
                + "".join(f"{counted[one] or '':6}" for one in columns)
            )
        return "\n".join(lines)

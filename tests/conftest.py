"""Settings shared by all tests: how hard to look, and where."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("dev", max_examples=100, **_COMMON)  # type: ignore[arg-type]
settings.register_profile(
    "ci",
    max_examples=100,
    derandomize=True,
    **_COMMON,  # type: ignore[arg-type]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

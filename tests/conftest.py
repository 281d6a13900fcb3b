"""Settings shared by all tests: how hard to look, and where.

A plain run looks at the same examples every time, so that it never fails by chance;
`make soak` looks at new ones and says how to repeat what it found.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "soak", print_blob=True, deadline=None, suppress_health_check=_SLOW
)
settings.load_profile("soak" if os.environ.get("MODICUM_SOAK") else "steady")

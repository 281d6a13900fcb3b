"""Generators of example organizations, and of requests to plan for.

`acme_health` is an example organization. `cohere` and `dpolicy` make requests of the
published evaluations, in columns (`model`), of types that our accounting prices
(`request_types`, `mechanisms`; `published_prices` for how the originals priced them).
"""

from modicum.workloads.acme_health import past_releases

__all__ = ["past_releases"]

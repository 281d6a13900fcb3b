"""What operators see of a server: metrics, traces and logs, and no fact about rows.

What may stand where is written down in docs/reference/telemetry.md, and held to by
tests that send marked strings everywhere and look for them afterwards.
"""

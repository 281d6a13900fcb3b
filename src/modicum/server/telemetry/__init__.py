"""Telemetry: metrics, traces and logs, without any fact about rows.

docs/reference/telemetry.md defines the content of each; tests send marked strings
everywhere and search for them afterwards.
"""

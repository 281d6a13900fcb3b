"""Risk analyses for a service: each in a separate process, with limits."""

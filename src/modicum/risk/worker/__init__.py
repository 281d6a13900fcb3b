"""Risk analyses for a service: each in a process of its own, with bounds."""

"""The operating system: clock, locks, files."""

"""Privacy loss distributions, by dp-accounting."""

"""The state: where everything stands, as a pure fold of the log."""

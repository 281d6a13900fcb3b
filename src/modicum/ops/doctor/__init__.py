"""The checks of `modicum doctor`: the machine, the store, and the log."""

"""What `modicum doctor` looks at: the machine, the store, and what the log says."""

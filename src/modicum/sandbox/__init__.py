"""Where programs run that nobody trusts: in bubblewrap, gVisor or WebAssembly."""

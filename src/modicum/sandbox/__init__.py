"""Untrusted programs, in bubblewrap, gVisor or WebAssembly."""

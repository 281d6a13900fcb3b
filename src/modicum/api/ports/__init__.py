"""Interfaces of storage, engines and the escrow."""

"""The operations of the escrow."""

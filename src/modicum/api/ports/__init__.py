"""What the product needs from the world: ports of storage, engines and the escrow."""

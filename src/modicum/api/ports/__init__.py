"""What operations need from the world: storage, engines, an escrow."""

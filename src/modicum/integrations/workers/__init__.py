"""Libraries in environments of their own: worker processes that are asked by lines."""

"""Small inputs that many tests share."""

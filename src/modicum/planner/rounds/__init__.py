"""From requests and what was spent to the problem of a round."""

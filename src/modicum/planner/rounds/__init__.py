"""From requests and charges to the problem of a round."""

"""The CEL subset: from text to a checked predicate of our own."""

"""A policy as a document: in parts, in one layout, with its comments."""

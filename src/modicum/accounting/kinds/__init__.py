"""Mechanisms by name: their parameters, their curves, the noise for a target."""

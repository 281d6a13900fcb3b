"""Filters, which stop an adaptive history in time, and odometers, which read it."""

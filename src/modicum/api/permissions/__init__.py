"""Identities, roles and tokens: permissions on data sets."""

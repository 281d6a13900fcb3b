"""Identities, roles and tokens: who may do what with which data sets."""

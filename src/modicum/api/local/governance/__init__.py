"""Governing: approvals, activations, remarks, and who may say what."""

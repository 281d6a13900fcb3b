"""Recognizing who asks."""

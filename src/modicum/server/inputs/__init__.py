"""Strict reading of requests, without unknown fields."""

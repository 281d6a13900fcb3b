"""Inputs and answers: one frozen struct for each shape, here and over HTTP."""

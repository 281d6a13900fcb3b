"""Inputs and answers: one frozen struct per shape, shared by Python and HTTP."""

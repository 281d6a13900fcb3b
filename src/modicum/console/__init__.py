"""The web console: pages over the operations of the service.

A page has no rights and no rules of its own: all that it shows or does is an operation
of the REST API, called in the same process with the visitor's own credentials.
"""

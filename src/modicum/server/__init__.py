"""A ledger for many people and programs, over HTTP.

`routes` parse requests and write responses; `service` has the operations, each with the
caller's identity as an argument; `auth` authenticates callers.
"""

"""A ledger for many people and programs, over HTTP.

`routes` read requests and write answers; `service` holds the verbs, each with the
identity of who asks as an argument; `identity` recognizes them.
"""

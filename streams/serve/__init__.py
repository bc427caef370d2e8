"""Readers of the views: the HTTP API, the live feed and the web page. Never the derivation.

`views` reads sessions and snapshots from a store, `api` answers with them, `feed` sends what
changes, `page` is static and an ordinary client of the API.
"""

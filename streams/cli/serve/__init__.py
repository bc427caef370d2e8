"""Serving the API, the live feed and the page, which are in `streams/serve`: with uvicorn."""

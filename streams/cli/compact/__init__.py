"""`contextgauge compact`: a session of the pipeline by a request, or the conversation of a file."""

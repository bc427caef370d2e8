"""`contextgauge demo`: simulated sessions through the whole pipeline, with or without services."""

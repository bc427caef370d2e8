"""`contextgauge install`: entries in the settings of runtimes, put in and taken out again.

`entries.py` computes the new settings and changes nothing; all others keep what a person wrote.
"""

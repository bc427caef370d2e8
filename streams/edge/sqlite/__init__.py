"""SQLite: the local file of `contextgauge view`, and sessions that rest in a derive worker.

The local file holds views, the state of the derivation and file positions, written in one
transaction, so a killed process continues exactly. One process writes a file; others read it or
take a copy (`local_file.py`). The values of resting sessions (`values.py`) repeat the changelog and
end with the process.
"""

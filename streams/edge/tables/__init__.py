"""Tables as files, with PyArrow: Parquet, Arrow IPC, CSV and NDJSON, in any of its file systems."""

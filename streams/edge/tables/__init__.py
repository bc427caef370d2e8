"""Tables as files, with PyArrow: Parquet, Arrow IPC, CSV and NDJSON, in any of its file systems.

One fixed schema per kind of record (`schema.py`), so that DuckDB and Spark read the same types from
every file. When files become part of an export is decided in `streams/flow/export`. `engine.py`
asks questions of them: `sql/views.sql` on top of the tables, `sql/questions` on top of the views.
"""

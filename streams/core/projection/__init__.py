"""The projection: records folded, in their order, into the documents that readers read.

`project.py` folds one record into its session's view and returns a new one; `documents.py` says
which other documents the record changes, `statistics.py` what it adds to the partition's
aggregates. All values are absolute, the result of all records up to a position: a batch that is
applied again changes nothing, and a rebuild gives the same bytes. A view contains no clock; what
depends on the moment of reading is decided in `streams/core/session_status.py`.
"""

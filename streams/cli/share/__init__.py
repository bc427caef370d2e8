"""`contextgauge share`: one session for others, without what says whose it is.

`shared.py` lists what may leave; all else stays. With `--text` the texts leave too, cleaned by
shape (`cleaning.py`). What leaves is shown first.
"""

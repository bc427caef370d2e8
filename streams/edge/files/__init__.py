"""Files of runtimes on this machine: found, followed, and read line by line.

A transcript is known by one path, whatever its runtime's housekeeping did to it
(`housekeeping.py`), and by positions in its decompressed content (`content.py`). `watch.py` finds
files by their metadata; `tail.py` reads what one of them gained and notices when it was replaced,
cut off or rewritten. `runtime_folders.py` is the table of where runtimes keep what.
"""

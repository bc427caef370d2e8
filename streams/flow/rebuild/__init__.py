"""`contextgauge rebuild`: the views are folded again from the log, or compared with it.

A rebuild (`rebuild`) begins the next generation. The project workers build it from the log, keep
the active one up to date meanwhile, and activate the next once every partition has caught up. An
audit (`audit`) folds the log itself, in memory, and compares the active generation with that.
"""

"""The checks, by what they look at: each a function from facts to results, none asks anything.

A check has an id, which alerts and documents name, and its docstring is its entry in
docs/DOCTOR.md. `streams/flow/doctor/gather.py` has asked for the facts before.
"""

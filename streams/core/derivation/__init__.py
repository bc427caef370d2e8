"""The derivation: `derive(rules, session, message)` returns the next state and the records.

`derive.py` is the entry point; `step.py` is the work on one message, `state.py` what is stored of a
session. Where a rule of docs/RULES.md is decided:

| rules | module |
|---|---|
| R1 to R5, R7, R8: what a message reports | `contextgauge/normalise/` |
| R4: messages seen before | `known_causes.py` |
| R6, R9, R10, R23, R26: sizes, responses, counts, edits | `readings.py`, `responses.py` |
| R12, R13: windows and limits | `limits.py`, `windows.py` |
| R14 to R18, R20, R25: attempts and durations | `compaction_attempts.py`, `transitions.py` |
| R19, R21, R22, R24, R27, R29: boundaries, completions, resets | `compact_boundaries.py` |
| R28, R30: times and ids | `step.py`, `record_ids.py`, `derive.py` |

`rules_config.py` holds the thresholds and windows in force.
"""

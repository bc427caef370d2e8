"""The derivation: `derive(rules, session, message)` returns the next state and the records.

`derive.py` is the entry point; `step.py` is the work on one message, `state.py` what is known of a
session, `stored_state.py` how that is stored. Where a rule of docs/RULES.md is decided:

| rules | module |
|---|---|
| R1 to R3, R5, R7, R8, R11, R25, R29, R32: what a message reports | `contextgauge/normalise/` |
| R4: messages seen before | `known_causes.py` |
| R6, R9, R10, R26: sizes, responses, warnings, edits | `readings.py`, `responses.py` |
| R12, R13: windows and limits | `limits.py`, `contextgauge/windows.py` |
| R14 to R18, R24: attempts and what triggered them | `compaction_attempts.py`, `transitions.py` |
| R19 to R23, R27, R31, R33: boundaries, durations, summaries, resets | `compact_boundaries.py` |
| R11: what a compaction's own call cost | `own_calls.py` |
| R34: one event by two ways | `two_ways.py` |
| R35: what messages contain | `content.py`, `contextgauge/compaction/reading/content_facts.py` |
| R28, R30: times, ids and forks | `step.py`, `record_ids.py`, `inherited.py`, `derive.py` |
| R33: when readers expect the next compaction | `streams/core/until_compaction.py` |

`rules_config.py` holds the thresholds and windows in force.
"""

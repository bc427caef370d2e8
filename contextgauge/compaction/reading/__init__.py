"""From the lines of a runtime to the conversation that its model sees.

`lines` says what one line means, `branches` which lines a user rewound, `context_changes` what
lines do to the active messages. `conversation` folds them into a history, `reading_state` is what
must be remembered to read on, `transcripts` reads a whole file. A compaction that the answers after
it contradict is undone (`compaction_effect`).
"""

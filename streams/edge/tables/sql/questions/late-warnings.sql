-- Which automatic compactions came without a warning from 70% used on since the last compaction or reset?
SELECT
    compactions.session_id,
    compactions.chain,
    compactions.number,
    compactions.ended,
    compactions."trigger",
    compactions.pre_tokens
FROM compactions
JOIN epochs ON epochs.ended_by = compactions.id
WHERE compactions."trigger" = 'auto' AND warned_sequence IS NULL
ORDER BY compactions.ended DESC NULLS LAST, compactions.session_id, compactions.number;

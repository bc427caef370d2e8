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
LEFT JOIN warnings
    ON warnings.session_id = compactions.session_id
    AND warnings.chain = compactions.chain
    AND warnings.sequence > epochs.begin_sequence
    AND warnings.sequence < compactions.sequence
    AND warnings.threshold_percent >= 70
WHERE compactions."trigger" = 'auto' AND warnings.id IS NULL
ORDER BY compactions.ended DESC NULLS LAST, compactions.session_id, compactions.number;

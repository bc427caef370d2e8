-- Which turns ended because the window was full?
SELECT session_id, chain, "time", model, reason, tokens_over
FROM context_exhausted AS exhausted
WHERE inherited IS NOT TRUE
AND NOT EXISTS (
    SELECT 1 FROM copied_history AS copied
    WHERE copied.session_id = exhausted.session_id
    AND copied.chain = exhausted.chain
    AND copied.last_sequence >= exhausted.sequence
)
ORDER BY "time" DESC NULLS LAST, session_id;

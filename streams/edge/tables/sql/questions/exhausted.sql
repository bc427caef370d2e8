-- Which turns ended because the window was full?
SELECT session_id, chain, "time", model, reason, tokens_over
FROM context_exhausted AS exhausted
WHERE inherited IS NOT TRUE
AND NOT EXISTS (SELECT 1 FROM copied_records AS copied WHERE copied.id = exhausted.id)
ORDER BY "time" DESC NULLS LAST, session_id;

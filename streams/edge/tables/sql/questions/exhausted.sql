-- Which turns ended because the window was full?
SELECT session_id, chain, "time", model, reason, tokens_over
FROM context_exhausted
WHERE inherited IS NOT TRUE
ORDER BY "time" DESC NULLS LAST, session_id;

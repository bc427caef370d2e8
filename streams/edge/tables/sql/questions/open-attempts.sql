-- Which compactions began and have no end?
SELECT session_id, chain, started, used_tokens, used_percent
FROM attempts
WHERE outcome IS NULL
ORDER BY started DESC NULLS LAST, session_id;

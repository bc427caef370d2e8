-- Which compactions failed, and with what error?
SELECT session_id, chain, started, ended, outcome, used_tokens, error
FROM attempts
WHERE outcome IS NOT NULL AND outcome <> 'succeeded'
ORDER BY ended DESC NULLS LAST, session_id;

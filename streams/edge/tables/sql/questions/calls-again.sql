-- Which calls were made again with the same input, and what did the repetitions cost?
SELECT
    session_id,
    chain,
    tool,
    input_hash,
    count(*) AS calls,
    sum(result_tokens_estimated) - max(result_tokens_estimated) AS repeated_tokens_estimated
FROM tools
WHERE changes_files IS NOT TRUE
GROUP BY ALL
HAVING count(*) > 1
ORDER BY repeated_tokens_estimated DESC NULLS LAST, calls DESC, session_id, chain, tool, input_hash;

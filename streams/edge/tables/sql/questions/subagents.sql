-- How full do subagents' contexts get, by their type?
SELECT
    coalesce(subagent_type, 'unknown') AS subagent_type,
    count(DISTINCT session_id || chain) AS subagents,
    count(*) AS responses,
    max(used_tokens) AS most_used_tokens,
    round(avg(used_tokens)) AS average_used_tokens
FROM (
    SELECT
        session_id,
        chain,
        used_tokens,
        -- A result names the type after the first readings.
        max(subagent_type) OVER (PARTITION BY session_id, chain) AS subagent_type
    FROM readings
    WHERE chain <> 'main'
) AS typed
GROUP BY 1
ORDER BY subagents DESC, 1;

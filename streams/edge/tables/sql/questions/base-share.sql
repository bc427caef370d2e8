-- How much of what is sent was there from each session's first response on: instructions and tools?
WITH bases AS (
    SELECT
        session_id,
        min_by(used_tokens, sequence) AS base_tokens,
        min_by(messages_total, sequence) AS first_messages
    FROM readings
    WHERE chain = 'main'
    GROUP BY session_id
)
SELECT
    coalesce(model, 'unknown') AS model,
    count(DISTINCT readings.session_id) AS sessions,
    count(*) AS responses,
    round(avg(base_tokens)) AS average_base_tokens,
    sum(used_tokens) AS context_tokens,
    sum(least(base_tokens, used_tokens)) AS repeated_tokens,
    round(100.0 * sum(least(base_tokens, used_tokens)) / nullif(sum(used_tokens), 0), 1)
        AS repeated_percent,
    true AS is_estimate
FROM readings
JOIN bases ON bases.session_id = readings.session_id
-- A session that begins with more is the continuation of another.
WHERE chain = 'main' AND first_messages <= 3
GROUP BY 1
ORDER BY context_tokens DESC, model;

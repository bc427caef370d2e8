-- How many tokens were sent again that the cache had held, by the pause before the response?
WITH steps AS (
    SELECT
        used_tokens,
        cache_read_tokens,
        model <> lag(model) OVER chains AS is_other_model,
        messages > lag(messages) OVER chains AS is_same_epoch,
        lag(used_tokens) OVER chains AS held_tokens,
        "time" - lag("time") OVER chains AS idle
    FROM readings
    WINDOW chains AS (PARTITION BY session_id, chain ORDER BY sequence)
)
SELECT
    CASE
        WHEN is_other_model THEN 'another model'
        WHEN idle IS NULL THEN 'unknown'
        WHEN idle < INTERVAL '5' MINUTE THEN '< 5 min'
        WHEN idle < INTERVAL '60' MINUTE THEN '5-60 min'
        ELSE '> 1 h'
    END AS pause,
    count(*) AS responses,
    sum(used_tokens) AS context_tokens,
    sum(greatest(held_tokens - cache_read_tokens, 0)) AS missed_tokens,
    round(100.0 * sum(greatest(held_tokens - cache_read_tokens, 0)) / nullif(sum(held_tokens), 0), 1)
        AS missed_percent,
    true AS is_estimate
FROM steps
WHERE is_same_epoch AND held_tokens IS NOT NULL AND cache_read_tokens IS NOT NULL
GROUP BY 1
ORDER BY min(idle) NULLS LAST, 1;

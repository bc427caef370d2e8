-- How large are contexts and answers in the ten responses before and after a compaction?
WITH marks AS (
    SELECT session_id, chain, sequence, used_tokens, cache_read_tokens, output_tokens, 0 AS boundary
    FROM readings
    UNION ALL
    SELECT session_id, chain, sequence, NULL, NULL, NULL, 1
    FROM compactions
),
epochs AS (
    SELECT *, sum(boundary) OVER (PARTITION BY session_id, chain ORDER BY sequence) AS epoch
    FROM marks
),
places AS (
    SELECT
        *,
        max(epoch) OVER (PARTITION BY session_id, chain) AS last_epoch,
        row_number() OVER (PARTITION BY session_id, chain, epoch ORDER BY sequence) AS since,
        row_number() OVER (PARTITION BY session_id, chain, epoch ORDER BY sequence DESC) AS until
    FROM epochs
    WHERE boundary = 0
),
sides AS (
    SELECT -until AS response, * FROM places WHERE epoch < last_epoch AND until <= 10
    UNION ALL
    SELECT since, * FROM places WHERE epoch > 0 AND since <= 10
)
SELECT
    response,
    count(*) AS boundaries,
    round(avg(used_tokens)) AS average_used_tokens,
    round(100.0 * sum(cache_read_tokens)
        / nullif(sum(used_tokens) FILTER (WHERE cache_read_tokens IS NOT NULL), 0), 1) AS cached_percent,
    round(avg(output_tokens)) AS average_output_tokens
FROM sides
GROUP BY response
ORDER BY response;

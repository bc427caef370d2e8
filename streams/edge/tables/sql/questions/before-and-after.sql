-- Do models behave differently right after a compaction than before it, and than elsewhere?
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
        used_tokens - lag(used_tokens) OVER (PARTITION BY session_id, chain, epoch ORDER BY sequence)
            AS step,
        row_number() OVER (PARTITION BY session_id, chain, epoch ORDER BY sequence) AS since,
        row_number() OVER (PARTITION BY session_id, chain, epoch ORDER BY sequence DESC) AS until
    FROM epochs
    WHERE boundary = 0
)
SELECT
    CASE
        WHEN epoch > 0 AND since <= 10 THEN 'ten after'
        WHEN epoch < last_epoch AND until <= 10 THEN 'ten before'
        ELSE 'elsewhere'
    END AS place,
    count(*) AS responses,
    round(avg(step) FILTER (WHERE step >= 0)) AS average_growth_tokens,
    round(avg(output_tokens)) AS average_output_tokens,
    count(output_tokens) AS with_output,
    round(100.0 * sum(cache_read_tokens)
        / nullif(sum(used_tokens) FILTER (WHERE cache_read_tokens IS NOT NULL), 0), 1) AS cached_percent
FROM places
WHERE last_epoch > 0
GROUP BY 1
ORDER BY 1 DESC;

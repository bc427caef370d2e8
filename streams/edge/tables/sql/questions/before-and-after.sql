-- Do models behave differently right after a compaction than before it, and than elsewhere?
WITH places AS (
    SELECT
        *,
        used_tokens
        - lag(used_tokens) OVER (PARTITION BY session_id, chain, begin_sequence ORDER BY sequence)
            AS step,
        bool_or(is_after) OVER (PARTITION BY session_id, chain) AS is_compacted
    FROM epoch_readings
)
SELECT
    CASE
        WHEN is_after AND since <= 10 THEN 'ten after'
        WHEN is_before AND until <= 10 THEN 'ten before'
        ELSE 'elsewhere'
    END AS place,
    count(*) AS responses,
    round(avg(step) FILTER (WHERE step >= 0)) AS average_growth_tokens,
    round(avg(output_tokens)) AS average_output_tokens,
    count(output_tokens) AS with_output,
    round(100.0 * sum(cache_read_tokens)
        / nullif(sum(used_tokens) FILTER (WHERE cache_read_tokens IS NOT NULL), 0), 1) AS cached_percent
FROM places
WHERE is_compacted
GROUP BY 1
ORDER BY 1 DESC;

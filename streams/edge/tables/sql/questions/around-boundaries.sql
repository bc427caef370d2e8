-- How large are contexts and answers in the ten responses before and after a compaction?
WITH sides AS (
    SELECT -until AS response, * FROM epoch_readings WHERE is_before AND until <= 10
    UNION ALL
    SELECT since, * FROM epoch_readings WHERE is_after AND since <= 10
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

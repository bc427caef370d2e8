-- What share of each context was read from the cache, day by day?
SELECT
    day,
    count(*) AS responses,
    sum(used_tokens) AS context_tokens,
    sum(cache_read_tokens) AS cache_read_tokens,
    round(100.0 * sum(cache_read_tokens) / nullif(sum(used_tokens), 0), 1) AS percent_read
FROM readings
WHERE cache_read_tokens IS NOT NULL AND day IS NOT NULL
GROUP BY day
ORDER BY day;

-- What did calls of models cost, day by day?
SELECT
    day,
    count(*) AS calls,
    sum(input_tokens) AS input_tokens,
    sum(cache_write_5m_tokens + cache_write_1h_tokens) AS cache_write_tokens,
    sum(cache_read_tokens) AS cache_read_tokens,
    sum(output_tokens) AS output_tokens,
    CAST(sum(cost_usd) AS DECIMAL(38, 6)) AS cost_usd,
    count(*) - count(cost_usd) AS unpriced_calls,
    bool_and(is_complete) AS is_complete
FROM costs
GROUP BY day
ORDER BY day NULLS LAST;

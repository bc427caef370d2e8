-- What did each model cost, and which prices are unknown?
SELECT
    coalesce(model, 'unknown') AS model,
    coalesce(service_tier, 'standard') AS service_tier,
    count(*) AS calls,
    sum(input_tokens) AS input_tokens,
    sum(cache_write_5m_tokens + cache_write_1h_tokens) AS cache_write_tokens,
    sum(cache_read_tokens) AS cache_read_tokens,
    sum(output_tokens) AS output_tokens,
    CAST(sum(cost_usd) AS DECIMAL(38, 6)) AS cost_usd,
    count(*) - count(cost_usd) AS unpriced_calls,
    bool_and(is_complete) AS is_complete,
    coalesce(max(price_source), 'unknown price') AS price_source,
    max(price_checked) AS price_checked
FROM costs
GROUP BY 1, 2
ORDER BY cost_usd DESC NULLS LAST, model, service_tier;

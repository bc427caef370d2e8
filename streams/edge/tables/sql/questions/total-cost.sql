-- What did all calls of models cost, and the summaries of compactions among them?
SELECT
    count(*) AS calls,
    CAST(sum(cost_usd) AS DECIMAL(38, 6)) AS cost_usd,
    count(*) FILTER (WHERE kind = 'summary') AS summary_calls,
    CAST(sum(cost_usd) FILTER (WHERE kind = 'summary') AS DECIMAL(38, 6)) AS summaries_usd,
    count(*) - count(cost_usd) AS unpriced_calls,
    coalesce(bool_and(is_complete), true) AS is_complete
FROM costs;

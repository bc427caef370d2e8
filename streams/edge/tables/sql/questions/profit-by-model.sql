-- Had compactions paid for themselves before the next one, by model?
SELECT
    coalesce(model, 'unknown') AS model,
    count(*) AS compactions,
    count(net_usd) AS priced,
    count(*) FILTER (WHERE net_usd > 0) AS paid_off,
    median(break_even_responses) AS median_responses_until_paid_off,
    CAST(sum(summary_usd) AS DECIMAL(38, 6)) AS summary_usd,
    CAST(sum(rewrite_usd) AS DECIMAL(38, 6)) AS rewrite_usd,
    CAST(sum(net_usd) AS DECIMAL(38, 6)) AS net_usd,
    coalesce(bool_and(is_net_complete), FALSE) AS is_complete
FROM profits
GROUP BY 1
ORDER BY net_usd DESC NULLS LAST, model;

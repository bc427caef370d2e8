-- Had compactions paid for themselves before the next one, by model?
SELECT
    coalesce(model, 'unknown') AS model,
    count(*) AS compactions,
    count(net_usd) AS priced,
    -- At most, where a net is not complete: what is unknown of a cost lowers it.
    CASE WHEN count(net_usd) > 0 THEN count(*) FILTER (WHERE net_usd > 0) END AS paid_off,
    median(break_even_responses) AS median_break_even_responses,
    CAST(sum(summary_usd) AS DECIMAL(38, 6)) AS summary_usd,
    CAST(sum(rewrite_usd) AS DECIMAL(38, 6)) AS rewrite_usd,
    CAST(sum(net_usd) AS DECIMAL(38, 6)) AS net_usd,
    count(net_usd) > 0 AND count(*) FILTER (WHERE net_usd > 0 AND NOT is_net_complete) = 0
        AS is_paid_off_complete,
    coalesce(bool_and(is_net_complete) FILTER (WHERE break_even_responses IS NOT NULL), FALSE)
        AS is_break_even_complete,
    bool_and(summary_usd IS NOT NULL AND is_summary_complete) AS is_summary_complete,
    bool_and(rewrite_usd IS NOT NULL AND is_rewrite_complete) AS is_rewrite_complete,
    coalesce(bool_and(is_net_complete) FILTER (WHERE net_usd IS NOT NULL), FALSE) AS is_net_complete
FROM profits
GROUP BY 1
ORDER BY net_usd DESC NULLS LAST, model;

-- What did the sessions of each folder cost?
SELECT
    coalesce(sessions.folder, 'unknown') AS folder,
    count(DISTINCT costs.session_id) AS sessions,
    count(*) AS calls,
    CAST(sum(costs.cost_usd) AS DECIMAL(38, 6)) AS cost_usd,
    count(*) - count(costs.cost_usd) AS unpriced_calls,
    bool_and(costs.is_complete) AS is_complete
FROM costs
LEFT JOIN sessions ON sessions.session_id = costs.session_id
GROUP BY 1
ORDER BY cost_usd DESC NULLS LAST, folder;

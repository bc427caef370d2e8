-- What did each session cost, and its compactions' own calls?
SELECT
    costs.session_id,
    max(sessions.runtime) AS runtime,
    max(sessions.folder) AS folder,
    min(costs."time") AS first_call,
    count(*) AS calls,
    CAST(sum(costs.cost_usd) AS DECIMAL(38, 6)) AS cost_usd,
    CAST(sum(costs.cost_usd) FILTER (WHERE costs.kind = 'summary') AS DECIMAL(38, 6)) AS summaries_usd,
    count(*) - count(costs.cost_usd) AS unpriced_calls,
    bool_and(costs.is_complete) AS is_complete
FROM costs
LEFT JOIN sessions ON sessions.session_id = costs.session_id
GROUP BY costs.session_id
ORDER BY cost_usd DESC NULLS LAST, costs.session_id;

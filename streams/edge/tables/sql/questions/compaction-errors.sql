-- Why did compactions fail?
SELECT
    coalesce(error, 'unknown') AS error,
    outcome,
    count(*) AS attempts,
    count(DISTINCT session_id) AS sessions
FROM attempts
WHERE outcome IS NOT NULL AND outcome <> 'succeeded'
GROUP BY 1, 2
ORDER BY attempts DESC, error, outcome;

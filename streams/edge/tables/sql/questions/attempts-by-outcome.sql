-- How did attempts to compact end?
SELECT
    coalesce(outcome, 'no end') AS outcome,
    count(*) AS attempts,
    round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent,
    count(DISTINCT session_id) AS sessions,
    count(duration_ms) AS with_duration,
    round(median(duration_ms)) AS median_ms
FROM attempts
GROUP BY 1
ORDER BY attempts DESC, outcome;

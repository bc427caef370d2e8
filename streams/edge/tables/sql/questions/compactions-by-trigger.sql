-- How many compactions were there, by what triggered them?
SELECT
    coalesce("trigger", 'unknown') AS "trigger",
    count(*) AS compactions,
    round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent,
    count(DISTINCT session_id) AS sessions,
    round(avg(pre_tokens)) AS average_pre_tokens,
    round(avg(duration_ms) FILTER (WHERE duration_source <> 'precomputed')) AS average_duration_ms
FROM compactions
GROUP BY 1
ORDER BY compactions DESC, "trigger";

-- How long do compactions take, and how is their duration known?
SELECT
    coalesce("trigger", 'unknown') AS "trigger",
    duration_source,
    count(*) AS compactions,
    min(duration_ms) AS least_ms,
    round(median(duration_ms)) AS median_ms,
    round(percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms)) AS p95_ms,
    max(duration_ms) AS most_ms,
    round(avg(duration_ms)) AS average_ms
FROM compactions
WHERE duration_ms IS NOT NULL
GROUP BY 1, 2
ORDER BY compactions DESC, 1, 2;

-- At which hours (UTC) are compactions slow?
SELECT
    extract(hour FROM ended) AS hour,
    count(*) AS compactions,
    round(median(duration_ms)) AS median_ms,
    max(duration_ms) AS most_ms
FROM compactions
WHERE duration_ms IS NOT NULL AND duration_source <> 'precomputed' AND ended IS NOT NULL
GROUP BY 1
ORDER BY 1;

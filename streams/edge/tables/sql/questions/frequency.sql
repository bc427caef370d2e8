-- How often are sessions compacted, day by day?
SELECT
    day,
    count(*) AS compactions,
    count(*) FILTER (WHERE "trigger" = 'auto') AS automatic,
    count(*) FILTER (WHERE "trigger" = 'manual') AS manual,
    count(*) FILTER (WHERE coalesce("trigger", '') NOT IN ('auto', 'manual')) AS other,
    count(DISTINCT session_id) AS sessions
FROM compactions
WHERE day IS NOT NULL
GROUP BY day
ORDER BY day;

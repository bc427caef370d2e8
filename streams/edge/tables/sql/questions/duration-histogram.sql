-- How are the durations of compactions distributed?
SELECT
    CASE
        WHEN duration_ms < 1000 THEN '0 below 1 s'
        WHEN duration_ms < 10000 THEN '1 1 to 10 s'
        WHEN duration_ms < 30000 THEN '2 10 to 30 s'
        WHEN duration_ms < 60000 THEN '3 30 to 60 s'
        WHEN duration_ms < 120000 THEN '4 1 to 2 min'
        WHEN duration_ms < 300000 THEN '5 2 to 5 min'
        ELSE '6 5 min and more'
    END AS duration,
    count(*) AS compactions,
    count(*) FILTER (WHERE "trigger" = 'manual') AS manual,
    count(*) FILTER (WHERE "trigger" = 'auto') AS automatic
FROM compactions
WHERE duration_ms IS NOT NULL AND duration_source <> 'precomputed'
GROUP BY 1
ORDER BY 1;

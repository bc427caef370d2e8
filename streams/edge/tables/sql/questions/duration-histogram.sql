-- How are the durations of compactions distributed?
WITH bins (number, least_ms, below_ms, duration) AS (
    VALUES
        (0, 0, 1000, '< 1 s'),
        (1, 1000, 10000, '1-10 s'),
        (2, 10000, 30000, '10-30 s'),
        (3, 30000, 60000, '30-60 s'),
        (4, 60000, 120000, '1-2 min'),
        (5, 120000, 300000, '2-5 min'),
        (6, 300000, NULL, '> 5 min')
)
SELECT
    bins.duration,
    count(compactions.id) AS compactions,
    count(*) FILTER (WHERE "trigger" = 'auto') AS automatic,
    count(*) FILTER (WHERE "trigger" = 'manual') AS manual,
    count(compactions.id) FILTER (WHERE coalesce("trigger", '') NOT IN ('auto', 'manual')) AS other
FROM bins
LEFT JOIN compactions
    ON duration_source <> 'precomputed'
    AND duration_ms >= least_ms
    AND (below_ms IS NULL OR duration_ms < below_ms)
GROUP BY bins.number, bins.duration
ORDER BY bins.number;

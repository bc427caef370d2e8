-- How is the share of a context that is left after a compaction distributed?
WITH bins (number, least, below, left_percent) AS (
    VALUES
        (0, 0, 10, '< 10%'),
        (1, 10, 20, '10-20%'),
        (2, 20, 30, '20-30%'),
        (3, 30, 50, '30-50%'),
        (4, 50, 75, '50-75%'),
        (5, 75, 100, '75-100%'),
        (6, 100, NULL, '100%+')
)
SELECT
    bins.left_percent,
    count(compactions.id) AS compactions,
    count(*) FILTER (WHERE "trigger" = 'auto') AS automatic,
    count(*) FILTER (WHERE "trigger" = 'manual') AS manual,
    count(compactions.id) FILTER (WHERE coalesce("trigger", '') NOT IN ('auto', 'manual')) AS other
FROM bins
LEFT JOIN compactions
    ON tokens_before > 0
    AND 100.0 * tokens_after / tokens_before >= least
    AND (below IS NULL OR 100.0 * tokens_after / tokens_before < below)
GROUP BY bins.number, bins.left_percent
ORDER BY bins.number;

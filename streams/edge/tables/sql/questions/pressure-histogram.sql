-- How full do sessions get at most?
WITH bins (number, least, below, used_percent) AS (
    VALUES
        (0, 0, 10, '< 10%'),
        (1, 10, 20, '10-20%'),
        (2, 20, 30, '20-30%'),
        (3, 30, 40, '30-40%'),
        (4, 40, 50, '40-50%'),
        (5, 50, 60, '50-60%'),
        (6, 60, 70, '60-70%'),
        (7, 70, 80, '70-80%'),
        (8, 80, 90, '80-90%'),
        (9, 90, 100, '90-100%'),
        (10, 100, NULL, '100%+')
)
SELECT
    bins.used_percent,
    count(session_id) AS sessions,
    count(session_id) FILTER (WHERE NOT is_most_assumed) AS known_window,
    count(session_id) FILTER (WHERE is_most_assumed) AS assumed_window
FROM bins
LEFT JOIN sessions
    ON most_used_percent >= least
    AND (below IS NULL OR most_used_percent < below)
GROUP BY bins.number, bins.used_percent
ORDER BY bins.number;

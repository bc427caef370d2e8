-- How is the number of messages between compactions distributed?
WITH bins (number, least, below, messages) AS (
    VALUES
        (0, 0, 20, '< 20'),
        (1, 20, 50, '20-49'),
        (2, 50, 100, '50-99'),
        (3, 100, 200, '100-199'),
        (4, 200, 400, '200-399'),
        (5, 400, 800, '400-799'),
        (6, 800, NULL, '800+')
)
SELECT
    bins.messages,
    count(compactions.id) AS compactions,
    count(*) FILTER (WHERE "trigger" = 'auto') AS automatic,
    count(*) FILTER (WHERE "trigger" = 'manual') AS manual,
    count(compactions.id) FILTER (WHERE coalesce("trigger", '') NOT IN ('auto', 'manual')) AS other
FROM bins
LEFT JOIN compactions
    ON chain = 'main'
    AND messages_since_last >= least
    AND (below IS NULL OR messages_since_last < below)
GROUP BY bins.number, bins.messages
ORDER BY bins.number;

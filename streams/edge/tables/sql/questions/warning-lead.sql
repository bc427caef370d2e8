-- How many responses before an automatic compaction did its first warning come?
WITH spans AS (
    SELECT
        *,
        coalesce(lag(sequence) OVER (PARTITION BY session_id, chain ORDER BY sequence), 0) AS begin
    FROM compactions
),
warned AS (
    SELECT spans.id, min(warnings.sequence) AS warning, max(spans.sequence) AS boundary
    FROM spans
    JOIN warnings
        ON warnings.session_id = spans.session_id
        AND warnings.chain = spans.chain
        AND warnings.sequence > spans.begin
        AND warnings.sequence < spans.sequence
    GROUP BY spans.id
),
leads AS (
    SELECT spans.id, max(warned.warning) AS warning, count(readings.id) AS responses
    FROM spans
    LEFT JOIN warned ON warned.id = spans.id
    LEFT JOIN readings
        ON readings.session_id = spans.session_id
        AND readings.chain = spans.chain
        AND readings.sequence > warned.warning
        AND readings.sequence < spans.sequence
    WHERE spans."trigger" = 'auto'
    GROUP BY spans.id
),
bins (number, least, below, lead) AS (
    VALUES
        (1, 0, 1, '0'),
        (2, 1, 3, '1-2'),
        (3, 3, 10, '3-9'),
        (4, 10, 30, '10-29'),
        (5, 30, NULL, '30+')
),
counted AS (
    SELECT 0 AS number, 'no warning' AS lead, count(*) FILTER (WHERE warning IS NULL) AS compactions
    FROM leads
    UNION ALL
    SELECT bins.number, bins.lead, count(leads.id)
    FROM bins
    LEFT JOIN leads
        ON warning IS NOT NULL AND responses >= least AND (below IS NULL OR responses < below)
    GROUP BY bins.number, bins.lead
)
SELECT lead, compactions
FROM counted
ORDER BY number;

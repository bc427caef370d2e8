-- How many responses before an automatic compaction did its first warning from 70% used on come?
WITH warned AS (
    SELECT
        compactions.id,
        compactions.session_id,
        compactions.chain,
        compactions.sequence AS boundary,
        min(warnings.sequence) AS warning
    FROM compactions
    JOIN epochs ON epochs.ended_by = compactions.id
    LEFT JOIN warnings
        ON warnings.session_id = compactions.session_id
        AND warnings.chain = compactions.chain
        AND warnings.sequence > epochs.begin_sequence
        AND warnings.sequence < compactions.sequence
        AND warnings.threshold_percent >= 70
    WHERE compactions."trigger" = 'auto'
    GROUP BY 1, 2, 3, 4
),
leads AS (
    SELECT warned.id, warned.warning, count(readings.id) AS responses
    FROM warned
    LEFT JOIN readings
        ON readings.session_id = warned.session_id
        AND readings.chain = warned.chain
        AND readings.sequence > warned.warning
        AND readings.sequence < warned.boundary
    GROUP BY warned.id, warned.warning
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

-- How many responses before an automatic compaction did its first warning from 70% used on come?
WITH leads AS (
    SELECT compactions.id, warned_sequence AS warning, count(readings.id) AS responses
    FROM compactions
    JOIN epochs ON epochs.ended_by = compactions.id
    LEFT JOIN readings
        ON readings.session_id = epochs.session_id
        AND readings.chain = epochs.chain
        AND readings.sequence > warned_sequence
        AND readings.sequence < end_sequence
    WHERE compactions."trigger" = 'auto'
    GROUP BY compactions.id, warned_sequence
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

-- Is a manual compaction faster than an automatic one?
WITH waits AS (
    SELECT "trigger", CASE WHEN duration_source <> 'precomputed' THEN duration_ms END AS wait_ms
    FROM compactions
)
SELECT
    count(*) FILTER (WHERE "trigger" = 'manual') AS manual,
    count(wait_ms) FILTER (WHERE "trigger" = 'manual') AS manual_with_duration,
    round(median(wait_ms) FILTER (WHERE "trigger" = 'manual')) AS manual_median_ms,
    count(*) FILTER (WHERE "trigger" = 'auto') AS automatic,
    count(wait_ms) FILTER (WHERE "trigger" = 'auto') AS automatic_with_duration,
    round(median(wait_ms) FILTER (WHERE "trigger" = 'auto')) AS automatic_median_ms
FROM waits;

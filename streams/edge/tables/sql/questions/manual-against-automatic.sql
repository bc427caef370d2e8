-- Is a manual compaction faster than an automatic one?
SELECT
    count(*) FILTER (WHERE "trigger" = 'manual') AS manual,
    round(median(duration_ms) FILTER (WHERE "trigger" = 'manual')) AS manual_median_ms,
    count(*) FILTER (WHERE "trigger" = 'auto') AS automatic,
    round(median(duration_ms) FILTER (WHERE "trigger" = 'auto')) AS automatic_median_ms
FROM compactions
WHERE duration_ms IS NOT NULL AND duration_source <> 'precomputed';

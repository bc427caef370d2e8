-- How full are contexts, day by day?
SELECT
    day,
    count(*) AS responses,
    round(median(used_percent), 1) AS median_percent,
    round(percentile_cont(0.9) WITHIN GROUP (ORDER BY used_percent), 1) AS p90_percent,
    bool_or(is_window_assumed) AS some_windows_assumed
FROM readings
WHERE used_percent IS NOT NULL AND day IS NOT NULL
GROUP BY day
ORDER BY day;

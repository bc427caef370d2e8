-- How full do contexts get, by model?
SELECT
    coalesce(model, 'unknown') AS model,
    count(*) AS responses,
    count(used_percent) AS with_percent,
    round(avg(used_percent), 1) AS average_percent,
    round(percentile_cont(0.9) WITHIN GROUP (ORDER BY used_percent), 1) AS p90_percent,
    round(max(used_percent), 1) AS most_percent,
    count(*) FILTER (WHERE used_percent >= 80) AS responses_at_80,
    bool_or(is_window_assumed) AS some_windows_assumed
FROM readings
GROUP BY 1
ORDER BY responses DESC, model;

-- What share of a context is left after a compaction, by trigger?
SELECT
    coalesce("trigger", 'unknown') AS "trigger",
    count(*) AS measured,
    round(avg(100.0 * tokens_after / tokens_before), 1) AS average_left_percent,
    round(median(100.0 * tokens_after / tokens_before), 1) AS median_left_percent,
    round(max(100.0 * tokens_after / tokens_before), 1) AS worst_left_percent,
    coalesce(bool_or(pre_tokens_source = 'last_reading'), FALSE) AS some_from_last_reading
FROM compactions
WHERE tokens_before > 0 AND tokens_after IS NOT NULL
GROUP BY 1
ORDER BY measured DESC, 1;

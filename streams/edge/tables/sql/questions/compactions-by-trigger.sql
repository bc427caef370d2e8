-- How many compactions were there, by what triggered them?
SELECT
    coalesce("trigger", 'unknown') AS "trigger",
    count(*) AS compactions,
    round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent,
    count(DISTINCT session_id) AS sessions,
    count(pre_tokens) AS with_size,
    round(avg(pre_tokens)) AS average_pre_tokens,
    count(duration_ms) FILTER (WHERE duration_source <> 'precomputed') AS with_duration,
    round(avg(duration_ms) FILTER (WHERE duration_source <> 'precomputed')) AS average_duration_ms,
    coalesce(bool_or(pre_tokens_source = 'last_reading'), FALSE) AS some_from_last_reading
FROM compactions
GROUP BY 1
ORDER BY compactions DESC, "trigger";

-- What is the average compaction: its size before and after, its duration, the messages before it?
SELECT
    count(*) AS compactions,
    count(pre_tokens) AS with_size,
    round(avg(pre_tokens)) AS average_pre_tokens,
    round(median(pre_tokens)) AS median_pre_tokens,
    count(tokens_after) AS with_size_after,
    round(avg(tokens_after)) AS average_tokens_after,
    round(avg(100.0 * tokens_after / nullif(tokens_before, 0)), 1) AS average_left_percent,
    round(median(100.0 * tokens_after / nullif(tokens_before, 0)), 1) AS median_left_percent,
    count(duration_ms) FILTER (WHERE duration_source <> 'precomputed') AS with_duration,
    round(avg(duration_ms) FILTER (WHERE duration_source <> 'precomputed')) AS average_ms,
    round(median(duration_ms) FILTER (WHERE duration_source <> 'precomputed')) AS median_ms,
    round(avg(messages_since_last) FILTER (WHERE chain = 'main'), 1) AS average_messages,
    round(median(messages_since_last) FILTER (WHERE chain = 'main'), 1) AS median_messages,
    coalesce(bool_or(pre_tokens_source = 'last_reading'), FALSE) AS some_from_last_reading
FROM compactions;

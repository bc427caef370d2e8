-- What do compactions cost, in tokens and time, by model?
SELECT
    coalesce(compactions.model, 'unknown') AS model,
    count(*) AS compactions,
    sum(compactions.cache_rewrite_tokens) AS rewritten_tokens,
    count(compactions.cache_rewrite_tokens) AS with_rewrite,
    sum(summary_input_tokens) AS summary_input_tokens,
    sum(summary_output_tokens) AS summary_output_tokens,
    count(summary_input_tokens) AS with_summary,
    sum(compactions.duration_ms) FILTER (WHERE duration_source <> 'precomputed') AS total_duration_ms,
    count(compactions.duration_ms) FILTER (WHERE duration_source <> 'precomputed') AS with_duration
FROM compactions
JOIN receipts ON receipts.id = compactions.id
GROUP BY 1
ORDER BY compactions DESC, model;

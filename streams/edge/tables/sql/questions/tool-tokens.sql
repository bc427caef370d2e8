-- Which tools fill the context, and which fail?
SELECT
    coalesce(tool, 'unknown') AS tool,
    count(*) AS calls,
    sum(input_tokens_estimated) AS input_tokens_estimated,
    sum(result_tokens_estimated) AS result_tokens_estimated,
    round(median(duration_ms) / 1000, 1) AS median_s,
    count(*) FILTER (WHERE is_error) AS failed
FROM tools
GROUP BY ALL
ORDER BY result_tokens_estimated DESC NULLS LAST, tool;

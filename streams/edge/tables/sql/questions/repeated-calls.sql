-- Which tools are called again with an input that they had before, and what do they return again?
WITH calls AS (
    SELECT
        coalesce(tool, 'unknown') AS tool,
        result_tokens_estimated,
        row_number() OVER (PARTITION BY session_id, chain, tool, input_hash ORDER BY sequence) > 1
            AS is_repeated
    FROM tools
    WHERE input_hash IS NOT NULL AND changes_files IS NOT TRUE
)
SELECT
    tool,
    count(*) AS calls,
    count(*) FILTER (WHERE is_repeated) AS repeated,
    round(100.0 * count(*) FILTER (WHERE is_repeated) / count(*), 1) AS percent,
    sum(result_tokens_estimated) FILTER (WHERE is_repeated) AS repeated_tokens_estimated
FROM calls
GROUP BY tool
HAVING count(*) FILTER (WHERE is_repeated) > 0
ORDER BY repeated_tokens_estimated DESC NULLS LAST, repeated DESC, tool;

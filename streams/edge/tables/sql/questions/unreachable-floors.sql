-- Which conversations are above three quarters of their threshold even after each compaction?
WITH thresholds AS (
    SELECT session_id, chain, max_by(auto_compact_threshold, sequence) AS threshold_tokens
    FROM context_limits
    WHERE auto_compact_threshold IS NOT NULL
    GROUP BY session_id, chain
),
floors AS (
    SELECT
        compactions.session_id,
        compactions.chain,
        max_by(model, sequence) AS model,
        count(*) AS compactions,
        min(tokens_after) AS floor_tokens,
        -- Without a reported threshold: the least size that was compacted automatically.
        coalesce(max(threshold_tokens), min(pre_tokens) FILTER (WHERE "trigger" = 'auto'))
            AS threshold_tokens,
        max(threshold_tokens) IS NULL AS is_threshold_learned
    FROM compactions
    LEFT JOIN thresholds
        ON thresholds.session_id = compactions.session_id
        AND thresholds.chain = compactions.chain
    WHERE tokens_after IS NOT NULL
    GROUP BY compactions.session_id, compactions.chain
)
SELECT
    *,
    round(100.0 * floor_tokens / threshold_tokens, 1) AS floor_percent,
    floor_tokens >= threshold_tokens AS is_unreachable
FROM floors
WHERE floor_tokens >= 0.75 * threshold_tokens
ORDER BY floor_percent DESC, session_id, chain;

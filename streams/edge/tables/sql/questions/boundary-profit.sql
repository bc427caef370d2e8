-- What did each compaction cost, and when had it paid for itself?
SELECT
    session_id,
    chain,
    number,
    ended,
    "trigger",
    model,
    CAST(summary_usd AS DECIMAL(38, 6)) AS summary_usd,
    rewrite_tokens,
    CAST(rewrite_usd AS DECIMAL(38, 6)) AS rewrite_usd,
    cache_share_before,
    cache_share_after,
    tokens_saved,
    CAST(saving_usd AS DECIMAL(38, 6)) AS saving_usd,
    responses,
    break_even_responses,
    CAST(net_usd AS DECIMAL(38, 6)) AS net_usd,
    is_net_complete,
    duration_ms,
    waited_ms
FROM profits
ORDER BY ended DESC NULLS LAST, session_id, chain, number;

-- What calls of models cost, in US dollars. Prices are not in records: `list_rates` looks them up.
-- An unknown price is null, never 0.

-- One row per call: a response, or the writing of a summary.
CREATE OR REPLACE VIEW calls AS
WITH counted AS (
    SELECT
        id,
        session_id,
        chain,
        sequence,
        'response' AS kind,
        "time",
        model,
        service_tier,
        input_tokens,
        coalesce(cache_creation_tokens, 0) AS written_tokens,
        coalesce(cache_creation_1h_tokens, 0) AS written_1h_tokens,
        coalesce(cache_read_tokens, 0) AS cache_read_tokens,
        output_tokens
    FROM readings
    UNION ALL
    SELECT
        receipts.id,
        receipts.session_id,
        receipts.chain,
        boundary.sequence,
        'summary',
        boundary."time",
        boundary.model,
        NULL,
        -- `greatest` leaves out nulls: an unknown input would be none.
        CASE
            WHEN receipts.summary_input_tokens IS NOT NULL
                THEN greatest(
                    0,
                    receipts.summary_input_tokens
                    - coalesce(receipts.summary_cache_read_tokens, 0)
                    - coalesce(receipts.summary_cache_creation_tokens, 0)
                )
        END,
        coalesce(receipts.summary_cache_creation_tokens, 0),
        coalesce(receipts.summary_cache_creation_1h_tokens, 0),
        coalesce(receipts.summary_cache_read_tokens, 0),
        receipts.summary_output_tokens
    FROM receipts
    JOIN compact_boundary AS boundary ON boundary.id = receipts.id
    WHERE receipts.summary_input_tokens IS NOT NULL OR receipts.summary_output_tokens IS NOT NULL
)
SELECT
    id,
    session_id,
    chain,
    sequence,
    kind,
    "time",
    model,
    service_tier,
    input_tokens,
    cache_read_tokens,
    output_tokens,
    CAST("time" AS DATE) AS day,
    date_trunc('hour', "time") AS hour,
    written_tokens - least(written_1h_tokens, written_tokens) AS cache_write_5m_tokens,
    least(written_1h_tokens, written_tokens) AS cache_write_1h_tokens,
    coalesce(input_tokens, 0) + written_tokens + cache_read_tokens AS prompt_tokens
FROM counted;

-- US dollars per token, by model, hour, service tier, and from how many tokens of a prompt on.
CREATE OR REPLACE VIEW prices AS
SELECT model, hour, service_tier, unnest(list_rates(model, hour, service_tier), recursive := true)
FROM (SELECT DISTINCT model, hour, service_tier FROM calls);

CREATE OR REPLACE VIEW costs AS
SELECT
    calls.*,
    CAST(
        coalesce(calls.input_tokens, 0) * prices.input
        + coalesce(calls.output_tokens, 0) * prices.output
        + calls.cache_write_5m_tokens * prices.cache_write_5m
        + calls.cache_write_1h_tokens * coalesce(prices.cache_write_1h, 0)
        + calls.cache_read_tokens * prices.cache_read
        AS DECIMAL(38, 15)
    ) AS cost_usd,
    prices.input IS NOT NULL
    AND calls.input_tokens IS NOT NULL
    AND calls.output_tokens IS NOT NULL
    AND (calls.cache_write_1h_tokens = 0 OR prices.cache_write_1h IS NOT NULL) AS is_complete,
    prices.source AS price_source,
    prices.checked AS price_checked
FROM calls
LEFT JOIN prices
    ON prices.model = calls.model
    AND prices.hour IS NOT DISTINCT FROM calls.hour
    AND prices.service_tier IS NOT DISTINCT FROM calls.service_tier
    AND calls.prompt_tokens > prices.above
    AND (prices.up_to IS NULL OR calls.prompt_tokens <= prices.up_to);

-- One row per compaction: what it cost, and what it saved until the next boundary or reset.
CREATE OR REPLACE VIEW profits AS
WITH after AS (
    SELECT
        epochs.begun_by AS id,
        count(*) AS responses,
        min(costs.sequence) AS first_sequence
    FROM epochs
    JOIN costs
        ON costs.session_id = epochs.session_id
        AND costs.chain = epochs.chain
        AND costs.kind = 'response'
        AND costs.sequence > epochs.begin_sequence
        AND (epochs.end_sequence IS NULL OR costs.sequence < epochs.end_sequence)
    WHERE epochs.begun_by IS NOT NULL
    GROUP BY epochs.begun_by
),
before AS (
    SELECT compactions.id, max(costs.sequence) AS last_sequence
    FROM compactions
    JOIN costs
        ON costs.session_id = compactions.session_id
        AND costs.chain = compactions.chain
        AND costs.kind = 'response'
        AND costs.sequence < compactions.sequence
    GROUP BY compactions.id
),
figures AS (
    SELECT
        compactions.id,
        compactions.session_id,
        compactions.chain,
        compactions.number,
        compactions.ended,
        compactions."trigger",
        coalesce(first.model, compactions.model) AS model,
        compactions.tokens_saved,
        compactions.cache_rewrite_tokens AS rewrite_tokens,
        coalesce(after.responses, 0) AS responses,
        summary.cost_usd AS summary_usd,
        summary.is_complete AS is_summary_complete,
        CAST(
            (compactions.cache_rewrite_tokens - least(compactions.cache_rewrite_tokens, first.cache_write_1h_tokens))
            * rates.cache_write_5m
            + least(compactions.cache_rewrite_tokens, first.cache_write_1h_tokens)
            * coalesce(rates.cache_write_1h, 0)
            AS DECIMAL(38, 15)
        ) AS rewrite_usd,
        first.cache_write_1h_tokens = 0 OR rates.cache_write_1h IS NOT NULL AS is_rewrite_complete,
        CAST(
            compactions.tokens_saved * CASE
                WHEN first.cache_read_tokens + first.cache_write_5m_tokens + first.cache_write_1h_tokens > 0
                    THEN rates.cache_read
                ELSE rates.input
            END
            AS DECIMAL(38, 15)
        ) AS saving_usd,
        round(CAST(last.cache_read_tokens AS DOUBLE) / nullif(last.prompt_tokens, 0), 4) AS cache_share_before,
        round(CAST(first.cache_read_tokens AS DOUBLE) / nullif(first.prompt_tokens, 0), 4) AS cache_share_after,
        compactions.duration_ms,
        CASE WHEN compactions.duration_source = 'precomputed' THEN 0 ELSE compactions.duration_ms END AS waited_ms
    FROM compactions
    LEFT JOIN after ON after.id = compactions.id
    LEFT JOIN before ON before.id = compactions.id
    LEFT JOIN costs AS first
        ON first.session_id = compactions.session_id
        AND first.chain = compactions.chain
        AND first.sequence = after.first_sequence
        AND first.kind = 'response'
    LEFT JOIN costs AS last
        ON last.session_id = compactions.session_id
        AND last.chain = compactions.chain
        AND last.sequence = before.last_sequence
        AND last.kind = 'response'
    LEFT JOIN prices AS rates
        ON rates.model = first.model
        AND rates.hour IS NOT DISTINCT FROM first.hour
        AND rates.service_tier IS NOT DISTINCT FROM first.service_tier
        AND first.prompt_tokens > rates.above
        AND (rates.up_to IS NULL OR first.prompt_tokens <= rates.up_to)
    LEFT JOIN costs AS summary ON summary.id = compactions.id AND summary.kind = 'summary'
)
SELECT
    *,
    CASE
        WHEN saving_usd > 0
            THEN CAST(ceil(CAST(summary_usd + rewrite_usd AS DOUBLE) / CAST(saving_usd AS DOUBLE)) AS BIGINT)
    END AS break_even_responses,
    saving_usd * responses - rewrite_usd - coalesce(summary_usd, 0) AS net_usd,
    coalesce(is_summary_complete, FALSE) AND is_rewrite_complete AS is_net_complete
FROM figures;

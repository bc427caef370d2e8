-- Which compactions came without a warning since the last one?
WITH spans AS (
    SELECT
        *,
        coalesce(lag(sequence) OVER (PARTITION BY session_id, chain ORDER BY sequence), 0) AS begin
    FROM compactions
)
SELECT spans.session_id, spans.chain, spans.number, spans.ended, spans."trigger", spans.pre_tokens
FROM spans
LEFT JOIN warnings
    ON warnings.session_id = spans.session_id
    AND warnings.chain = spans.chain
    AND warnings.sequence > spans.begin
    AND warnings.sequence < spans.sequence
WHERE spans."trigger" = 'auto' AND warnings.id IS NULL
ORDER BY spans.ended DESC NULLS LAST, spans.session_id, spans.number;

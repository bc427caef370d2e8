-- What fills contexts, by the runtimes' own latest account of each session?
WITH latest AS (
    SELECT session_id, max_by(categories, sequence) AS categories
    FROM context_limits
    WHERE categories IS NOT NULL AND inherited IS NOT TRUE
    GROUP BY session_id
),
parts AS (
    SELECT
        session_id,
        unnest(
            from_json(categories, '[{"id": "VARCHAR", "name": "VARCHAR", "kind": "VARCHAR", "tokens": "BIGINT"}]')
        ) AS part
    FROM latest
)
SELECT
    coalesce(part.name, part.id, 'unknown') AS category,
    coalesce(part.kind, 'unknown') AS kind,
    count(DISTINCT session_id) AS sessions,
    round(sum(part.tokens) / count(DISTINCT session_id)) AS average_tokens,
    round(100.0 * sum(part.tokens) / sum(sum(part.tokens)) OVER (), 1) AS percent
FROM parts
WHERE part.kind IS DISTINCT FROM 'free'
GROUP BY 1, 2
ORDER BY average_tokens DESC NULLS LAST, category;

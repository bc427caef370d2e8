-- By how many tokens does a context grow with each response, by model?
WITH steps AS (
    SELECT
        model,
        used_tokens - lag(used_tokens) OVER (PARTITION BY session_id, chain ORDER BY sequence) AS step
    FROM readings
    WHERE NOT is_late
)
SELECT
    coalesce(model, 'unknown') AS model,
    count(*) AS steps,
    round(avg(step)) AS average,
    round(median(step)) AS median,
    max(step) AS most
FROM steps
WHERE step >= 0
GROUP BY 1
ORDER BY steps DESC, model;

-- Which windows were assumed, and which of them were proven wrong?
SELECT
    coalesce(model, 'unknown') AS model,
    window_source,
    window_tokens,
    count(*) AS responses,
    count(DISTINCT session_id) AS sessions,
    max(used_tokens) AS most_used_tokens
FROM readings
WHERE window_source IN ('default', 'exceeded', 'unknown')
GROUP BY 1, 2, 3
ORDER BY responses DESC, model;

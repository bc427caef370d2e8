-- How large is a context when it is compacted, by model and trigger?
SELECT
    coalesce(model, 'unknown') AS model,
    coalesce("trigger", 'unknown') AS "trigger",
    count(*) AS compactions,
    count(pre_tokens) AS with_size,
    min(pre_tokens) AS least,
    round(avg(pre_tokens)) AS average,
    round(median(pre_tokens)) AS median,
    max(pre_tokens) AS most,
    coalesce(bool_or(pre_tokens_source = 'last_reading'), FALSE) AS some_from_last_reading
FROM compactions
GROUP BY 1, 2
ORDER BY compactions DESC, model, "trigger";

-- How much of the cache had to be written again after compactions?
SELECT
    coalesce(model, 'unknown') AS model,
    count(cache_rewrite_tokens) AS measured,
    sum(cache_rewrite_tokens) AS rewritten_tokens,
    round(avg(cache_rewrite_tokens)) AS average,
    round(avg(tokens_saved)) AS average_saved
FROM compactions
GROUP BY 1
HAVING count(cache_rewrite_tokens) > 0
ORDER BY rewritten_tokens DESC, model;

-- How many tokens did compactions remove from contexts, day by day?
SELECT
    day,
    count(*) AS measured,
    sum(tokens_saved) AS tokens_saved,
    round(avg(tokens_saved)) AS average_saved_tokens,
    coalesce(bool_or(pre_tokens_source = 'last_reading'), FALSE) AS some_from_last_reading
FROM compactions
WHERE day IS NOT NULL AND tokens_saved IS NOT NULL
GROUP BY day
ORDER BY day;

-- How many tokens did compactions remove from contexts?
SELECT
    count(*) AS compactions,
    count(tokens_saved) AS measured,
    sum(tokens_saved) AS tokens_saved,
    round(avg(tokens_saved)) AS average,
    round(100.0 * sum(tokens_saved) / nullif(sum(tokens_before) FILTER (WHERE tokens_saved IS NOT NULL), 0), 1)
        AS percent_of_before,
    coalesce(bool_or(tokens_saved IS NOT NULL AND pre_tokens_source = 'last_reading'), FALSE) AS some_from_last_reading
FROM compactions;

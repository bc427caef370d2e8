-- Which folders use most tokens?
SELECT
    coalesce(folder, 'unknown') AS folder,
    count(*) AS sessions,
    sum(responses) AS responses,
    sum(input_tokens) AS input_tokens,
    sum(cache_creation_tokens) AS cache_creation_tokens,
    sum(cache_read_tokens) AS cache_read_tokens,
    sum(output_tokens) AS output_tokens,
    sum(compactions) AS compactions
FROM sessions
GROUP BY 1
ORDER BY output_tokens DESC NULLS LAST, folder;

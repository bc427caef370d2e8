-- Which sessions were compacted three times or more within ten minutes?
WITH spans AS (
    SELECT
        session_id,
        chain,
        ended,
        lag(ended, 2) OVER (PARTITION BY session_id, chain ORDER BY sequence) AS two_before
    FROM compactions
)
SELECT session_id, chain, count(*) AS times, min(two_before) AS first, max(ended) AS last
FROM spans
WHERE two_before IS NOT NULL AND ended - two_before <= INTERVAL '10' MINUTE
GROUP BY session_id, chain
ORDER BY times DESC, session_id, chain;

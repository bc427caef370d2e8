-- After how many messages is a session compacted?
SELECT
    count(*) AS compactions,
    round(avg(messages_since_last), 1) AS average_messages,
    round(median(messages_since_last), 1) AS median_messages,
    min(messages_since_last) AS least,
    max(messages_since_last) AS most
FROM compactions
WHERE chain = 'main';

-- What the metrics endpoint shows of all connectors together: messages behind the measured heads, dead letters open.
SELECT COALESCE((SELECT sum(l.lag) FROM connector.lag AS l), 0)::bigint,
       (SELECT count(*) FROM connector._dlq AS d WHERE d.status = 'open')

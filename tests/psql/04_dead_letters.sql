-- 04: a message that cannot be landed is set aside with its coordinates, its reason and its bytes. Its neighbours land.

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-poison', '{billing}',
    '{"name": "poison", "brokers": "127.0.0.1:29092", "topic": "acme.partners-poison"}');
SELECT connector.run('acme-poison') AS run \gset
SELECT status, records_in, records_out, skipped, dead_letters FROM connector.wait(:'run');

SELECT reason, status, attempts, count(*) FROM connector.dlq GROUP BY reason, status, attempts;

-- One of each kind.
SELECT topic, partition, "offset", key, convert_from(raw, 'UTF8') AS value FROM connector.dlq ORDER BY "offset" LIMIT 3;
SELECT message FROM connector.dlq ORDER BY "offset" LIMIT 3;
SELECT payload FROM connector.dlq ORDER BY "offset" LIMIT 3;

-- Settle them: forgotten, or sent again by other means. Neither touches the topic or the table. An id that is typed in needs
-- its argument's name (or ::uuid), for there is also a form that takes many.
SELECT id FROM connector.dlq ORDER BY "offset" LIMIT 1 \gset
SELECT connector.dlq_discard(id => :'id');
SELECT connector.dlq_discard(id => :'id') AS again;
SELECT connector.dlq_replayed(array(SELECT id FROM connector.dlq WHERE status = 'open' AND "offset" < 100)) AS replayed;
SELECT status, count(*) FROM connector.dlq GROUP BY status ORDER BY status;
SELECT name, status, open_dead_letters FROM connector.connectors;

-- Met again, a letter is the same row: open once more, one attempt later.
SELECT connector.reset_cursor('acme-poison');
SELECT connector.run('acme-poison') AS run \gset
SELECT status, records_in, records_out, duplicates, dead_letters FROM connector.wait(:'run');
SELECT status, attempts, count(*) FROM connector.dlq GROUP BY status, attempts;

-- A value that does not fit its column is set aside too: here the column was made for numbers.
INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-typed', '{billing}',
    '{"name": "typed", "brokers": "127.0.0.1:29092", "topic": "acme.partners", "types": {"city": "bigint"}, "only": ["partner_id", "city"]}');
SELECT connector.run('acme-typed') AS run \gset
\x
SELECT status, code, records_in, records_out, dead_letters, message, replace(hint, :'run', '<run>') AS hint FROM connector.wait(:'run');
\x
SELECT reason, message FROM connector.dlq WHERE connector = 'acme-typed' ORDER BY "offset" LIMIT 1;

SELECT * FROM connector.verify();
SELECT action, connector, jsonb_array_length(detail -> 'ids') AS letters FROM connector.audit WHERE action LIKE 'dlq%' ORDER BY at;

-- 02: a run reads from the stored positions to the ends of the topic, and ends.

INSERT INTO connector.manifest (name, scopes, spec) VALUES
    ('acme-partners', '{billing}', '{"name": "partners", "brokers": "127.0.0.1:29092", "topic": "acme.partners"}'),
    ('acme-orders',   '{billing}', '{"name": "orders",   "brokers": "127.0.0.1:29092", "topic": "acme.orders"}'),
    ('acme-absent',   '{billing}', '{"name": "absent",   "brokers": "127.0.0.1:29092", "topic": "acme.absent"}');

-- In a script: ask, commit, wait.
SELECT connector.run('acme-orders') AS run \gset
SELECT connector, status, code, records_in, records_out, skipped, dead_letters FROM connector.wait(:'run');

-- By hand: one call that asks, waits and tells. It gives the row of the ledger; here into variables, for it is wide.
CALL connector.catch_up('acme-partners') \gset
\echo :connector :status :code :records_in = :records_out + :skipped

-- Nothing new: Completed, with nothing done.
CALL connector.catch_up('acme-partners') \gset
\echo :connector :status :code :records_in = :records_out + :skipped

-- A topic that is not there is not made by reading it.
SELECT connector.run('acme-absent') AS absent \gset
\x
SELECT status, code, message, hint, retryable FROM connector.wait(:'absent');
\x

-- The ledger.
SELECT connector, status, code, records_in, records_out, skipped, started_by, ended_at >= started_at AS ended
FROM connector.runs ORDER BY scheduled_at;

-- What each run set out to read, and whether it got there.
SELECT r.connector, p.topic, p.partition, p.start_offset, p.target_offset, p.next_offset, p.reached
FROM connector.run_partitions AS p JOIN connector.runs AS r USING (run_id) ORDER BY r.scheduled_at, p.partition;

-- Where every offset went.
SELECT a.connector, a.partition, a.advanced, a.written, a.duplicates, a.dead_letters, a.filtered, a.no_record
FROM connector.accounting AS a JOIN connector.runs AS r USING (run_id) ORDER BY r.scheduled_at, a.partition;

-- The runs' own words.
SELECT connector, level, message FROM connector.log WHERE connector = 'acme-orders' ORDER BY at;

-- While a run works it has a row here. None does.
SELECT connector, done, target, percent, bar FROM connector.progress;

-- Every identity of the books that does not hold: none.
SELECT * FROM connector.verify();

-- A rollback leaves neither the run nor its job.
BEGIN;
SELECT connector.run('acme-partners') IS NOT NULL AS asked;
ROLLBACK;
SELECT count(*) AS runs FROM connector.runs;

-- The rows: seven columns of ours, then the message's own fields.
SELECT column_name, data_type FROM connector.catalog WHERE connector = 'acme-partners';
SELECT id, _source, tenant_id, partner_id, name FROM connector.t_partners ORDER BY id LIMIT 2;

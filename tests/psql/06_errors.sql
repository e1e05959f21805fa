-- 06: what an operator can be refused. Each refusal has a SQLSTATE, names the thing, and says what to do; nothing is half done.

INSERT INTO connector.manifest (name, scopes, spec) VALUES
    ('acme-partners', '{billing}', '{"name": "partners", "brokers": "127.0.0.1:29092", "topic": "acme.partners"}'),
    ('acme-orders',   '{billing}', '{"name": "orders",   "brokers": "127.0.0.1:29092", "topic": "acme.orders"}');
SELECT connector.run('acme-partners') AS run \gset
SELECT status FROM connector.wait(:'run');

-- A name that does not exist: P0002.
SELECT connector.run('acme-partner');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CALL connector.catch_up('acme-partner');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.get('acme-partner');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.drop('acme-partner');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.reset_cursor('acme-partner');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.seek('acme-partner', 0, 1);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.seek('acme-partner', now());
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.cancel('00000000-0000-0000-0000-000000000000');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT status FROM connector.wait('00000000-0000-0000-0000-000000000000');
\echo SQLSTATE :LAST_ERROR_SQLSTATE

-- A value that cannot be: 22023.
SELECT connector.run('acme-partners', 'maybe');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT status FROM connector.wait(:'run', '-1 second');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.seek('acme-partners', 0, -1);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.seek('acme-partners', 'infinity'::timestamptz);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT * FROM connector.describe('rabbitmq');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT connector.cron_next('61 * * * *', now());
\echo SQLSTATE :LAST_ERROR_SQLSTATE
INSERT INTO connector.manifest (name, scopes, spec) VALUES ('Acme', '{billing}', '[]');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-twice', '{billing}', '{"name": "orders", "brokers": "127.0.0.1:29092", "topic": "acme.orders"}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE

-- What stored positions rest on does not change under them: 55000.
UPDATE connector.manifest SET spec = spec || '{"topic": "acme.orders", "dedup": "offset"}' WHERE name = 'acme-partners';
\echo SQLSTATE :LAST_ERROR_SQLSTATE

-- What never changes: 0A000.
UPDATE connector.manifest SET name = 'acme-partner' WHERE name = 'acme-partners';
\echo SQLSTATE :LAST_ERROR_SQLSTATE
TRUNCATE connector.manifest;
\echo SQLSTATE :LAST_ERROR_SQLSTATE

-- Refusals that name a run are shown with its id masked.
CREATE FUNCTION pg_temp.refusal(statement text, OUT state text, OUT message text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE,
        message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    message := regexp_replace(message, '[0-9a-f]{8}-[0-9a-f-]{27}', '<run>', 'g');
    hint := regexp_replace(hint, '[0-9a-f]{8}-[0-9a-f-]{27}', '<run>', 'g');
END $$;
\x

-- A run starts when the transaction that asked for it has committed: to wait for it before that is 55000.
BEGIN;
SELECT connector.run('acme-partners') AS asked \gset
SELECT * FROM pg_temp.refusal(format('SELECT connector.wait(%L)', :'asked'));
ROLLBACK;
SELECT * FROM pg_temp.refusal($$SELECT connector.wait(connector.run('acme-partners'))$$);

-- Above READ COMMITTED a transaction never sees the end: 25001.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM pg_temp.refusal(format('SELECT connector.wait(%L)', :'run'));
ROLLBACK;

-- catch_up commits, so it is called alone: 2D000 is PostgreSQL's own.
BEGIN;
CALL connector.catch_up('acme-partners');
ROLLBACK;
\echo SQLSTATE :LAST_ERROR_SQLSTATE

-- While a run works, its positions are its own: 55006. Here one is made to work by hand, in a transaction that is rolled back.
BEGIN;
INSERT INTO connector._run (run_id, connector_id, connector, tenant_id, started_by, requested_by, status, started_at, created_xid)
SELECT gen_random_uuid(), connector_id, name, tenant_id, 'manual', session_user, 'Running', now(), '3' FROM connector.manifest WHERE name = 'acme-orders';
SELECT * FROM pg_temp.refusal($$SELECT connector.reset_cursor('acme-orders')$$);
SELECT * FROM pg_temp.refusal($$SELECT connector.seek('acme-orders', 0, 1)$$);
SELECT * FROM pg_temp.refusal($$UPDATE connector.manifest SET spec = spec || '{"topic": "acme.other"}' WHERE name = 'acme-orders'$$);
-- The wait for it ends with its timeout: KC001.
SELECT state, message FROM pg_temp.refusal((SELECT format('SELECT connector.wait(%L, ''0'')', run_id) FROM connector.runs WHERE connector = 'acme-orders'));
ROLLBACK;

-- A table that something else rests on is not dropped behind its back: 2BP01.
CREATE VIEW billing AS SELECT partner_id FROM connector.t_partners;
DELETE FROM connector.manifest WHERE name = 'acme-partners';
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP VIEW billing;

-- A right that is missing: 42501.
CREATE ROLE acme_nobody_06;
SET ROLE acme_nobody_06;
SELECT connector.run('acme-partners');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
RESET ROLE;
DROP ROLE acme_nobody_06;

-- 05: an application's own table starts a connector.

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-partners', '{billing}',
    '{"name": "partners", "brokers": "127.0.0.1:29092", "topic": "acme.partners"}');

CREATE TABLE wish (what text);
CREATE TRIGGER refresh AFTER INSERT ON wish FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change('acme-partners');

-- A transaction that is rolled back asks for nothing.
BEGIN;
INSERT INTO wish VALUES ('never mind');
ROLLBACK;
SELECT count(*) AS runs FROM connector.runs;

-- Many statements of one transaction make one run.
BEGIN;
INSERT INTO wish VALUES ('fresh partners');
INSERT INTO wish VALUES ('now, please');
COMMIT;
SELECT run_id FROM connector.runs ORDER BY scheduled_at LIMIT 1 \gset
SELECT status, started_by, records_in, records_out FROM connector.wait(:'run_id');
SELECT count(*) AS runs FROM connector.runs;

-- A trigger that names nothing, and one at the wrong moment, are refused when they fire, with what to write instead.
CREATE TRIGGER astray AFTER INSERT ON wish FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change('acme-partner');
INSERT INTO wish VALUES ('anything');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP TRIGGER astray ON wish;

CREATE TRIGGER eager BEFORE INSERT ON wish FOR EACH ROW EXECUTE FUNCTION connector.run_on_change('acme-partners');
INSERT INTO wish VALUES ('anything');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP TRIGGER eager ON wish;

CREATE TRIGGER nameless AFTER INSERT ON wish FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change();
INSERT INTO wish VALUES ('anything');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP TABLE wish;

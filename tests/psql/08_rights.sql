-- 08: who may do what. Each role walks through every function and every view: ok, or the refusal's
-- SQLSTATE. 42501 is a right that is missing; another one says that the role was let in and the call refused for what it asks.

INSERT INTO connector.manifest (name, scopes, spec) VALUES
    ('acme-partners', '{billing}', '{"name": "partners", "brokers": "127.0.0.1:29092", "topic": "acme.partners"}');
SELECT connector.run('acme-partners') AS run \gset
SELECT status FROM connector.wait(:'run');
CREATE ROLE acme_nobody_08;

-- Each statement is tried and undone.
CREATE FUNCTION pg_temp.attempt(as_role text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_word text;
BEGIN
    BEGIN
        EXECUTE format('SET LOCAL ROLE %I', as_role);
        EXECUTE statement;
        v_word := 'ok';
        RAISE EXCEPTION USING ERRCODE = 'UNDO1';
    EXCEPTION
        WHEN SQLSTATE 'UNDO1' THEN NULL;
        WHEN OTHERS THEN v_word := SQLSTATE;
    END;
    RETURN v_word;
END $$;
CREATE TEMP TABLE statement (nr integer GENERATED ALWAYS AS IDENTITY, call text);
INSERT INTO statement (call) VALUES
    ($$INSERT INTO connector.manifest (name, scopes, spec) VALUES ('x', '{b}', '{"name": "x", "brokers": "x:1", "topic": "x"}')$$),
    ($$UPDATE connector.manifest SET scopes = '{x}'$$),
    ($$DELETE FROM connector.manifest$$),
    ($$SELECT connector.apply('{"apiVersion": "connectors.highwater.io/v1", "kind": "Connector", "metadata": {"name": "x", "scopes": ["b"]}, "spec": {"name": "x", "brokers": "x:1", "topic": "x"}}')$$),
    ($$SELECT connector.validate('{}')$$),
    ($$SELECT connector.describe()$$),
    ($$SELECT connector.get('acme-partners')$$),
    ($$SELECT connector.drop('acme-partners')$$),
    ($$SELECT connector.run('acme-partners')$$),
    (format('SELECT connector.wait(%L)', :'run')),
    (format('SELECT connector.cancel(%L)', :'run')),
    ($$SELECT connector.reset_cursor('acme-partners')$$),
    ($$SELECT connector.seek('acme-partners', 0, 1)$$),
    ($$SELECT connector.seek('acme-partners', now())$$),
    ($$SELECT connector.dlq_discard(id => '00000000-0000-0000-0000-000000000000')$$),
    ($$SELECT connector.dlq_discard(ids => '{}')$$),
    ($$SELECT connector.dlq_replayed(id => '00000000-0000-0000-0000-000000000000')$$),
    ($$SELECT connector.dlq_replayed(ids => '{}')$$),
    ($$SELECT connector.dlq_retry(id => '00000000-0000-0000-0000-000000000000')$$),
    ($$SELECT connector.dlq_retry(ids => '{}')$$),
    ($$SELECT connector.verify()$$),
    ($$SELECT connector.trace('acme-partners', 0, 17)$$),
    ($$SELECT connector.cron_next('* * * * *', now())$$),
    ($$SELECT connector.current_tenant()$$),
    ($$SELECT connector.adopt()$$),
    ($$SELECT connector.secret_set('ACME_KAFKA_PW', 'never in a statement')$$),
    ($$SELECT connector.secret_drop('ACME_KAFKA_PW')$$),
    ($$SELECT connector.card('billing')$$),
    ($$SELECT connector.seal_key()$$);

SELECT regexp_replace(regexp_replace(s.call, '[0-9a-f]{8}-[0-9a-f-]{27}', '<id>'), '^(.{60}).{4,}$', '\1 …') AS statement,
    pg_temp.attempt('highwater_operator', s.call) AS operator,
    pg_temp.attempt('highwater_reader', s.call) AS reader,
    pg_temp.attempt('acme_nobody_08', s.call) AS nobody
FROM statement AS s ORDER BY s.nr;

-- Procedures commit, so they cannot be tried and undone: who may call them.
SELECT p.proname AS procedure,
    has_function_privilege('highwater_operator', p.oid, 'EXECUTE') AS operator,
    has_function_privilege('highwater_reader', p.oid, 'EXECUTE') AS reader,
    has_function_privilege('acme_nobody_08', p.oid, 'EXECUTE') AS nobody
FROM pg_proc AS p WHERE p.pronamespace = 'connector'::regnamespace AND p.prokind = 'p' ORDER BY p.proname COLLATE "C";

-- Every table and view whose name does not begin with an underscore.
SELECT c.relname AS name,
    pg_temp.attempt('highwater_operator', format('SELECT * FROM connector.%I', c.relname)) AS operator,
    pg_temp.attempt('highwater_reader', format('SELECT * FROM connector.%I', c.relname)) AS reader,
    pg_temp.attempt('acme_nobody_08', format('SELECT * FROM connector.%I', c.relname)) AS nobody
FROM pg_class AS c
WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname NOT LIKE '\_%'
ORDER BY c.relname COLLATE "C";

-- Functions that this list forgot: none.
SELECT p.proname
FROM pg_proc AS p
WHERE p.pronamespace = 'connector'::regnamespace AND p.proname NOT LIKE '\_%' AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype
    AND NOT EXISTS (SELECT FROM statement AS s WHERE s.call LIKE '%connector.' || p.proname || '(%')
ORDER BY p.proname COLLATE "C";

-- What is internal is nobody's: functions that operators, readers or everybody may execute although their names begin with an
-- underscore.
SELECT p.proname,
    has_function_privilege('highwater_operator', p.oid, 'EXECUTE') AS operator,
    has_function_privilege('highwater_reader', p.oid, 'EXECUTE') AS reader,
    has_function_privilege('acme_nobody_08', p.oid, 'EXECUTE') AS nobody
FROM pg_proc AS p
WHERE p.pronamespace = 'connector'::regnamespace AND p.proname LIKE '\_%'
    AND (has_function_privilege('highwater_operator', p.oid, 'EXECUTE') OR has_function_privilege('highwater_reader', p.oid, 'EXECUTE')
        OR has_function_privilege('acme_nobody_08', p.oid, 'EXECUTE'))
ORDER BY p.proname COLLATE "C";

DROP ROLE acme_nobody_08;

-- The dead-letter gestures for an id that is written as a bare literal, as one does in psql: between uuid and uuid[] PostgreSQL
-- could not choose.

CREATE OR REPLACE FUNCTION connector._letter_id(id text)
RETURNS uuid
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._letter_id(id)
--   Reads the id of a dead letter.
-- Errors:  22023 no uuid.
BEGIN
    RETURN id::uuid;
EXCEPTION WHEN invalid_text_representation THEN
    RAISE EXCEPTION 'a dead letter''s id is a uuid, not %', quote_literal(left(id, 100))
        USING ERRCODE = '22023', HINT = 'List them with: SELECT id, reason, message FROM connector.dlq;';
END
$fn$;
COMMENT ON FUNCTION connector._letter_id(text) IS 'Internal: the id of a dead letter, read from a text.';
REVOKE ALL ON FUNCTION connector._letter_id(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.dlq_discard(id text)
RETURNS boolean
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_discard(id)
--   As connector.dlq_discard(uuid), for an id given as a text or a bare literal.
SELECT connector.dlq_discard(connector._letter_id(id))
$fn$;
COMMENT ON FUNCTION connector.dlq_discard(text) IS 'The same for an id written as a bare literal.';
REVOKE ALL ON FUNCTION connector.dlq_discard(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_discard(text) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.dlq_replayed(id text)
RETURNS boolean
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_replayed(id)
--   As connector.dlq_replayed(uuid), for an id given as a text or a bare literal.
SELECT connector.dlq_replayed(connector._letter_id(id))
$fn$;
COMMENT ON FUNCTION connector.dlq_replayed(text) IS 'The same for an id written as a bare literal.';
REVOKE ALL ON FUNCTION connector.dlq_replayed(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_replayed(text) TO highwater_operator;

CREATE OR REPLACE FUNCTION connector.dlq_retry(id text)
RETURNS uuid
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.dlq_retry(id)
--   As connector.dlq_retry(uuid), for an id given as a text or a bare literal.
SELECT connector.dlq_retry(connector._letter_id(id))
$fn$;
COMMENT ON FUNCTION connector.dlq_retry(text) IS 'The same for an id written as a bare literal.';
REVOKE ALL ON FUNCTION connector.dlq_retry(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.dlq_retry(text) TO highwater_operator;

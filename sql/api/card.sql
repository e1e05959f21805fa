-- What a scope may ask, on one page of text: for people and programs that write queries against connector tables.

CREATE OR REPLACE FUNCTION connector._quoted_line(name text)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._quoted_line(name)
--   A name as SQL takes it, on one line: names come out of messages, and one with a line break must not look like two lines
--   of the card, nor one with marks that reorder text like another name.
    SELECT CASE
        WHEN _quoted_line.name !~ v.unseen THEN quote_ident(_quoted_line.name)
        ELSE 'U&"' || (
            SELECT string_agg(CASE WHEN c.letter ~ v.unseen THEN '\' || lpad(to_hex(ascii(c.letter)), 4, '0')
                WHEN c.letter IN ('\', '"') THEN c.letter || c.letter ELSE c.letter END, '' ORDER BY c.n)
            FROM regexp_split_to_table(_quoted_line.name, '') WITH ORDINALITY AS c (letter, n)) || '"'
    END
    FROM (SELECT '[\u0001-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]' AS unseen) AS v
$fn$;
COMMENT ON FUNCTION connector._quoted_line(text) IS 'Internal: a name quoted for SQL, on one line.';
REVOKE ALL ON FUNCTION connector._quoted_line(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._card_columns(table_name text)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._card_columns(table_name)
--   The lines of a table's columns; NULL where there is no table.
    SELECT string_agg(format(E'\n  %s %s', connector._quoted_line(a.attname::text), format_type(a.atttypid, a.atttypmod)), '' ORDER BY a.attnum)
    FROM pg_attribute AS a
    WHERE a.attrelid = connector._scope_table(_card_columns.table_name) AND a.attnum > 0 AND NOT a.attisdropped
$fn$;
COMMENT ON FUNCTION connector._card_columns(text) IS 'Internal: a card''s lines of one table''s columns.';
REVOKE ALL ON FUNCTION connector._card_columns(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector.card(scope text)
RETURNS text
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector.card(scope)
--   The tables that a scope may ask: each with its connector, the moment it is as of, and its columns with their types. It is
--   read in the caller's own snapshot: rows that a query of the same snapshot finds are at least as new as the card says.
-- Returns: text; names are quoted as SQL takes them, one column a line.
-- Errors:  P0002 no connector of the session's tenant has the scope; or none of the session's roles is one that
--          connector.scope_roles lists for it, nor highwater_operator or highwater_reader.
-- Touches: connector.manifest, connector._endpoint, connector.scope_roles (read; only the session's tenant).
DECLARE
    v_tenant bigint := connector.current_tenant();
    v_card   text;
    v_tables bigint;
BEGIN
    SELECT count(*), string_agg(format(E'\n\nconnector.%I -- connector %s, %s%s', 't_' || (m.spec ->> 'name'), m.name,
            coalesce('data as of ' || to_char(e.data_as_of AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || ' UTC', 'no run has completed yet'),
            coalesce(connector._card_columns(e.table_name), E'\n  (not made yet: no run has had a row to write)')), '' ORDER BY m.name)
    INTO v_tables, v_card
    FROM connector.manifest AS m
    JOIN connector._endpoint AS e ON e.connector_id = m.connector_id
    WHERE m.tenant_id = v_tenant AND card.scope = ANY (m.scopes)
        AND (pg_has_role(session_user, 'highwater_operator', 'MEMBER') OR pg_has_role(session_user, 'highwater_reader', 'MEMBER')
            OR EXISTS (SELECT FROM connector.scope_roles AS s JOIN pg_roles AS r ON r.rolname = s.role
                WHERE s.tenant_id = v_tenant AND s.scope = card.scope AND pg_has_role(session_user, r.oid, 'MEMBER')));
    IF v_tables = 0 THEN
        RAISE EXCEPTION 'scope % does not exist, or is not for role %', connector._shown(coalesce(card.scope, '')), quote_ident(session_user)
            USING ERRCODE = 'P0002',
                  HINT = 'The scopes are those of connector.manifest; an operator maps one to a role: INSERT INTO connector.scope_roles (scope, role) VALUES (…);';
    END IF;
    RETURN format('scope %s: %s', connector._shown(card.scope), v_tables || CASE v_tables WHEN 1 THEN ' table' ELSE ' tables' END) || v_card;
END
$fn$;
COMMENT ON FUNCTION connector.card(text) IS 'The tables that a scope may ask, as text: every column quoted for SQL with its type, and the moment up to which each table holds all of its topic.';
REVOKE ALL ON FUNCTION connector.card(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION connector.card(text) TO highwater_operator, highwater_reader;

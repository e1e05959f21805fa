-- 07: psql explains the product. What \dn+, \df+ and \dv+ show beside each name is its COMMENT.
\pset format wrapped
\pset columns 150

SELECT obj_description('connector'::regnamespace, 'pg_namespace') AS "schema connector";

-- The row that declares a connector: \d+ connector.manifest.
SELECT a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS "not null", col_description(a.attrelid, a.attnum) AS description
FROM pg_attribute AS a WHERE a.attrelid = 'connector.manifest'::regclass AND a.attnum > 0 ORDER BY a.attnum;

-- What can be called: \df+ connector.*
SELECT p.proname AS name, pg_get_function_identity_arguments(p.oid) AS arguments, obj_description(p.oid, 'pg_proc') AS description
FROM pg_proc AS p
WHERE p.pronamespace = 'connector'::regnamespace AND p.proname NOT LIKE '\_%' AND p.prokind = 'f'
ORDER BY p.proname COLLATE "C", pg_get_function_identity_arguments(p.oid) COLLATE "C";
SELECT p.proname AS procedure, obj_description(p.oid, 'pg_proc') AS description
FROM pg_proc AS p
WHERE p.pronamespace = 'connector'::regnamespace AND p.prokind = 'p'
ORDER BY p.proname COLLATE "C";

-- What can be looked at: \dv+ connector.*
SELECT c.relname AS name, obj_description(c.oid, 'pg_class') AS description
FROM pg_class AS c
WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind = 'v' ORDER BY c.relname COLLATE "C";

-- Every column says what it is: \d+ connector.runs.
SELECT a.attname AS column, col_description(a.attrelid, a.attnum) AS description
FROM pg_attribute AS a WHERE a.attrelid = 'connector.runs'::regclass AND a.attnum > 0 ORDER BY a.attnum;

-- What is left without a word: nothing.
SELECT c.relname, a.attname
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind = 'v' AND col_description(c.oid, a.attnum) IS NULL;

-- The roles to give to people and programs: \du+ highwater*
SELECT r.rolname AS role, shobj_description(r.oid, 'pg_authid') AS description
FROM pg_roles AS r WHERE r.rolname IN ('highwater_operator', 'highwater_owner', 'highwater_reader') ORDER BY r.rolname COLLATE "C";

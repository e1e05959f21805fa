-- Whether a connector's table is still the one whose shape is in hand: one row, none when there is no such relation.
-- The last column rises with every change of a column and differs after any change of an index; table_read.sql computes the same.
-- $1 text: name of the relation in schema connector.
SELECT
    c.oid,
    c.relkind::text,
    c.relpersistence::text,
    pg_catalog.pg_get_userbyid(c.relowner) = 'highwater_owner',
    (SELECT pg_catalog.sum(v.xmin::text::bigint) FROM pg_catalog.pg_attribute AS v WHERE v.attrelid = c.oid AND v.attnum > 0)::bigint
        + COALESCE((SELECT pg_catalog.sum(x.xmin::text::bigint) FROM pg_catalog.pg_index AS x WHERE x.indrelid = c.oid), 0)::bigint
FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = 'connector'::pg_catalog.regnamespace AND c.relname = $1

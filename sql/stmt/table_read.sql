-- The shape of a connector's table: one row a column, dropped ones included, in the table's order; none when there is no such relation.
-- $1 text: name of the relation in schema connector. Run with search_path = pg_catalog, so that types are named in full.
SELECT
    c.oid,
    c.relkind::text,
    c.relpersistence::text,
    pg_catalog.pg_get_userbyid(c.relowner) = 'highwater_owner',
    (SELECT pg_catalog.sum(v.xmin::text::bigint) FROM pg_catalog.pg_attribute AS v WHERE v.attrelid = c.oid AND v.attnum > 0)::bigint
        + COALESCE((SELECT pg_catalog.sum(x.xmin::text::bigint) FROM pg_catalog.pg_index AS x WHERE x.indrelid = c.oid), 0)::bigint,
    COALESCE(u.hash_index, ''),
    COALESCE(u.key_index, ''),
    COALESCE(pg_catalog.pg_get_serial_sequence(pg_catalog.format('connector.%I', c.relname), i.attname)::pg_catalog.regclass::oid, 0),
    a.attname::text,
    a.attisdropped,
    COALESCE(pg_catalog.format_type(a.atttypid, a.atttypmod), ''),
    COALESCE(b.base, ''),
    a.attnotnull,
    a.atthasdef AND a.attgenerated = '',
    a.attgenerated <> '',
    a.attidentity <> ''
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
LEFT JOIN pg_catalog.pg_attribute AS i ON i.attrelid = c.oid AND i.attname = 'id' AND NOT i.attisdropped
LEFT JOIN LATERAL (
    -- Only an immediate index over the whole table refuses a second row; others guard nothing that we rely on.
    SELECT
        pg_catalog.min(n.relname) FILTER (WHERE k.attname = '_row_hash') AS hash_index,
        pg_catalog.min(n.relname) FILTER (WHERE k.attname = 'id') AS key_index
    FROM pg_catalog.pg_index AS x
    JOIN pg_catalog.pg_class AS n ON n.oid = x.indexrelid
    JOIN pg_catalog.pg_attribute AS k ON k.attrelid = x.indrelid AND k.attnum = x.indkey[0]
    WHERE x.indrelid = c.oid AND x.indisunique AND x.indimmediate AND x.indisvalid AND x.indpred IS NULL AND x.indnkeyatts = 1
) AS u ON true
LEFT JOIN LATERAL (
    WITH RECURSIVE d AS (
        SELECT t.typbasetype AS base, t.typtypmod AS mod FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid AND t.typtype = 'd'
        UNION ALL
        SELECT t.typbasetype, t.typtypmod FROM d JOIN pg_catalog.pg_type AS t ON t.oid = d.base AND t.typtype = 'd'
    )
    SELECT pg_catalog.format_type(d.base, d.mod) AS base
    FROM d
    JOIN pg_catalog.pg_type AS t ON t.oid = d.base AND t.typtype <> 'd'
) AS b ON true
WHERE c.relnamespace = 'connector'::pg_catalog.regnamespace AND c.relname = $1
ORDER BY a.attnum

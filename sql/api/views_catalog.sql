-- What the connector tables hold: one row a column, for people and programs that write queries.

CREATE OR REPLACE VIEW connector.catalog
WITH (security_invoker = on) AS
SELECT m.name AS connector,
    m.scopes,
    e.table_name,
    a.attname::text AS column_name,
    quote_ident(a.attname) AS quoted_name,
    format_type(a.atttypid, a.atttypmod) AS data_type,
    h.added_at,
    h.added_by_run,
    e.data_as_of
FROM connector.manifest AS m
JOIN connector._endpoint AS e ON e.connector_id = m.connector_id
JOIN pg_catalog.pg_class AS t ON t.relname = e.table_name AND t.relnamespace = 'connector'::regnamespace AND t.relkind IN ('r', 'p')
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN connector._column AS h ON h.connector_id = m.connector_id AND h.column_name = a.attname
ORDER BY m.name, a.attnum;
COMMENT ON VIEW connector.catalog IS 'Every column of every connector table: its name ready to paste into SQL, its type, when and by which run it was added, and the moment up to which the table holds all of the topic. New columns are only ever added at the end.';
COMMENT ON COLUMN connector.catalog.connector IS 'The connector that fills the table.';
COMMENT ON COLUMN connector.catalog.scopes IS 'The connector''s scopes.';
COMMENT ON COLUMN connector.catalog.table_name IS 'The table, in schema connector.';
COMMENT ON COLUMN connector.catalog.column_name IS 'The column''s name as it is.';
COMMENT ON COLUMN connector.catalog.quoted_name IS 'The column''s name as SQL wants it.';
COMMENT ON COLUMN connector.catalog.data_type IS 'The column''s type.';
COMMENT ON COLUMN connector.catalog.added_at IS 'When a run added the column; null for our own seven and for what people added.';
COMMENT ON COLUMN connector.catalog.added_by_run IS 'The run that added the column.';
COMMENT ON COLUMN connector.catalog.data_as_of IS 'Everything that the broker held and had committed at this moment is in the table.';

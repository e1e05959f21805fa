-- The roles that default privileges gave rights on a new table, quoted; only its owner is to have any.
-- $1 oid: the table.
SELECT DISTINCT CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(x.grantee)) END
FROM pg_catalog.pg_class AS c
CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS x
WHERE c.oid = $1 AND x.grantee <> c.relowner

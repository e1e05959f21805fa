-- Those of the named secrets ($2) that a tenant ($1) has, sealed.
SELECT s.name, s.sealed
FROM connector._secret_value AS s
WHERE s.tenant_id = $1::bigint AND s.name = ANY ($2::text[])

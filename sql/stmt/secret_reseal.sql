-- Stores the secret of a tenant ($1) and name ($2) sealed anew ($3); it counts as no change of it.
UPDATE connector._secret_value AS s
SET sealed = $3::bytea
WHERE s.tenant_id = $1::bigint AND s.name = $2::text

-- Every tenant's secrets, sealed, held until the transaction ends.
SELECT s.tenant_id, s.name, s.sealed
FROM connector._secret_value AS s
ORDER BY s.tenant_id, s.name
FOR UPDATE

-- The fingerprint of the database's key, held until the transaction ends: no secret is set meanwhile.
SELECT k.fingerprint
FROM connector._seal_key AS k
FOR UPDATE

-- The database's public key, and the session's tenant (null: none). No row where no sidecar has made the key yet.
SELECT t.fingerprint, t.key_id, t.public_key, t.tenant_id
FROM connector.seal_key() AS t

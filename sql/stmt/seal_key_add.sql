-- Makes a key the database's, unless there is one: parameters are its fingerprint, subkey id, bytes, and who made it. Waits for
-- another first sidecar that is about to commit its own.
INSERT INTO connector._seal_key (fingerprint, key_id, public_key, made_by)
VALUES ($1::text, $2::text, $3::bytea, $4::text)
ON CONFLICT (one) DO NOTHING

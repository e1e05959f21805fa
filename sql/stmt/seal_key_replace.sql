-- Puts another key in the place of the database's: parameters as in seal_key_add.
UPDATE connector._seal_key
SET fingerprint = $1::text,
    key_id = $2::text,
    public_key = $3::bytea,
    made_by = $4::text,
    made_at = clock_timestamp()

-- Erases every secret of every tenant.
WITH emptied AS (DELETE FROM connector._secret_value)
DELETE FROM connector._secret

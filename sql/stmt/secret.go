package stmt

import _ "embed" // the statements are files

// The statements about the key and the secrets.
var (
	//go:embed seal_key.sql
	SealKey string
	//go:embed seal_key_add.sql
	SealKeyAdd string
	//go:embed seal_key_hold.sql
	SealKeyHold string
	//go:embed seal_key_replace.sql
	SealKeyReplace string
	//go:embed secret_get.sql
	SecretGet string
	//go:embed secret_all.sql
	SecretAll string
	//go:embed secret_reseal.sql
	SecretReseal string
	//go:embed secret_erase.sql
	SecretErase string
	//go:embed secret_audit.sql
	SecretAudit string
)

func secrets() map[string]string {
	return map[string]string{
		"seal_key": SealKey, "seal_key_add": SealKeyAdd, "seal_key_hold": SealKeyHold, "seal_key_replace": SealKeyReplace,
		"secret_get": SecretGet, "secret_all": SecretAll, "secret_reseal": SecretReseal, "secret_erase": SecretErase, "secret_audit": SecretAudit,
	}
}

package stmt

import _ "embed" // the statements are files

// The statements of a chunk's transaction and of a table's shape.
var (
	//go:embed land_settings.sql
	LandSettings string
	//go:embed land_lock.sql
	LandLock string
	//go:embed land_ids.sql
	LandIDs string
	//go:embed land_id_list.sql
	LandIDList string
	//go:embed land_letters.sql
	LandLetters string
	//go:embed land_advance.sql
	LandAdvance string
	//go:embed table_read.sql
	TableRead string
	//go:embed table_check.sql
	TableCheck string
	//go:embed table_rows.sql
	TableRows string
	//go:embed table_added.sql
	TableAdded string
	//go:embed table_widened.sql
	TableWidened string
	//go:embed table_made.sql
	TableMade string
	//go:embed table_was_made.sql
	TableWasMade string
	//go:embed table_grants.sql
	TableGrants string
	//go:embed table_scopes.sql
	TableScopes string
)

// landing gives this file's statements by their files' names.
func landing() map[string]string {
	return map[string]string{
		"land_settings": LandSettings, "land_lock": LandLock, "land_ids": LandIDs, "land_id_list": LandIDList, "land_letters": LandLetters,
		"land_advance": LandAdvance, "table_read": TableRead, "table_check": TableCheck, "table_rows": TableRows, "table_added": TableAdded,
		"table_widened": TableWidened, "table_made": TableMade, "table_was_made": TableWasMade, "table_grants": TableGrants,
		"table_scopes": TableScopes,
	}
}

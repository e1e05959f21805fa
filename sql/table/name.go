package table

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"unicode/utf8"
)

// NameMax is how many bytes PostgreSQL keeps of a name (NAMEDATALEN − 1).
const NameMax = 63

// nameKept is what a name that is too long keeps of itself; an underscore and eight hex digits follow.
const nameKept = 54

// ColumnName gives the column that a field is kept in: the field's own name byte for byte, or, where that is over 63
// bytes, its first 54 bytes (less where a character would be cut) with _ and 8 hex digits of its SHA-256. cut says which.
// The field must be valid UTF-8, not empty and without NUL; the same field has the same column in every sidecar.
func ColumnName(field string) (name string, cut bool) {
	if len(field) <= NameMax {
		return field, false
	}
	end := nameKept
	for end > 0 && !utf8.RuneStart(field[end]) {
		end--
	}
	sum := sha256.Sum256([]byte(field))
	return field[:end] + "_" + hex.EncodeToString(sum[:4]), true
}

// postgresNames are the columns that PostgreSQL keeps for itself on every table.
var postgresNames = []string{"xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"}

// Reserved says whether a field of this name can have no column: it is one of the seven system columns, or one that
// PostgreSQL keeps for itself. Names are compared exactly; ID is not id.
func Reserved(name string) bool {
	return isSystem(name) || slices.Contains(postgresNames, name)
}

func isSystem(name string) bool {
	return slices.ContainsFunc(System, func(c Column) bool { return c.Name == name })
}

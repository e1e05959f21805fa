// Package table knows how a connector's table looks and how it grows: it reads the shape the server has, says what a
// new field becomes and what a value means for a column (both pure), and makes and alters tables.
//
// It knows no message format: values come in as a [Kind] and their text. **No number is ever rounded**: a value that its
// column cannot hold exactly widens the column or is refused.
package table

// Kinds of a value, as far as a column's type depends on it.
const (
	Null Kind = iota
	Bool
	Int    // whole number within int64
	Number // any other number
	String
	JSON // object or array
)

// Kind is what a value is before it meets a column.
type Kind uint8

// Alter is one change of a table's shape that a chunk needs.
type Alter struct {
	Column string
	Field  string // the message's field, for the column history
	Type   string // SQL type, e.g. bigint, numeric(18,4), text
	Widen  bool   // ALTER COLUMN TYPE, else ADD COLUMN
}

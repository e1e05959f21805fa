// Package table knows how a connector's table looks and how it grows: it reads the shape the server has, says what a
// new field becomes and what a value means for a column (both pure), and makes and alters tables.
//
// It knows no message format: values come in as a [Kind] and their text. It starts no transaction and takes no decision
// about rows; package land does both. The types to know are [Shape], [Column] and [Alter].
//
// **No number is ever rounded**: a value that its column cannot hold exactly widens the column or is refused.
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

// Schema is where every connector's table lives.
const Schema = "connector"

// Owner is the role that owns every connector's table.
const Owner = "highwater_owner"

// MaxColumns is how many columns a connector's table may have, its seven system columns included. PostgreSQL's own
// limit is 1,600 with dropped ones counted; the distance leaves an operator room to mend a table by hand.
const MaxColumns = 1500

// maxAttributes is PostgreSQL's limit for a table's columns; dropped columns count (MaxHeapAttributeNumber).
const maxAttributes = 1600

// System are the columns that every connector's table begins with, in this order.
var System = []Column{
	{Name: "id", SQLType: "bigint", Type: BigInt, NotNull: true, HasDefault: true},
	{Name: "_row_hash", SQLType: "text", Type: Text, NotNull: true},
	{Name: "_ingested_at", SQLType: "timestamp with time zone", Type: Other, NotNull: true, HasDefault: true},
	{Name: "_source", SQLType: "text", Type: Text},
	{Name: "_run_id", SQLType: "uuid", Type: Other},
	{Name: "_mapping_version", SQLType: "integer", Type: Other},
	{Name: "tenant_id", SQLType: "bigint", Type: BigInt, NotNull: true},
}

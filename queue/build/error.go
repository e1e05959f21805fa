package build

import (
	"fmt"
	"strings"

	"highwater/reader/decode"
	"highwater/sql/table"
)

// ReservedError ends the run: a field bears a name that the table keeps for itself. Code reserved_column.
type ReservedError struct {
	Field     string // as the message has it
	Column    string // after rename
	Transport bool   // a transport column that the manifest includes, else a system column or one of PostgreSQL's
	Topic     string
	Partition int32
	Offset    int64
}

func (e *ReservedError) Error() string {
	what := fmt.Sprintf("field %s", decode.Quote(e.Field))
	if e.Field != e.Column {
		what += fmt.Sprintf(", renamed to %s,", decode.Quote(e.Column))
	}
	where := fmt.Sprintf("%s:%d:%d", e.Topic, e.Partition, e.Offset)
	if e.Transport {
		return fmt.Sprintf("%s: %s bears the name of a transport column that the manifest includes; give the field another name with rename", where, what)
	}
	return fmt.Sprintf("%s: %s bears a name that the table keeps for itself (%s, and PostgreSQL's xmin, xmax, cmin, cmax, ctid, tableoid); give it another name with rename",
		where, what, strings.Join(systemNames(), ", "))
}

// Hint says what to write into the manifest.
func (e *ReservedError) Hint() string {
	return fmt.Sprintf(`Add "rename": {%q: "another_name"} to the connector's spec, then run it again: nothing of this chunk was written.`, e.Field)
}

func systemNames() []string {
	names := make([]string, len(table.System))
	for i, c := range table.System {
		names[i] = c.Name
	}
	return names
}

// SchemaError ends the run because the manifest says that a change of the messages' shape shall: "schema": "strict" (Code
// strict_schema) or "type_change": "fail" (Code schema_changed).
type SchemaError struct {
	Code      string
	Topic     string
	Partition int32
	Offset    int64
	Why       string // names the field
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.Topic, e.Partition, e.Offset, e.Why)
}

// Hint says what would let the run pass.
func (e *SchemaError) Hint() string {
	if e.Code == codeStrict {
		return `Add the column to the table, or take "schema": "strict" out of the spec; then run the connector again.`
	}
	return `Correct the producer or the column's type, or set "type_change" to dead-letter or widen; then run the connector again.`
}

const (
	codeStrict  = "strict_schema"
	codeChanged = "schema_changed"
)

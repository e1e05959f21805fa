package table

import (
	"fmt"
	"maps"
	"slices"
)

// Shape is a table as the server had it when it was read. A nil *Shape stands for a table that does not exist yet.
// It is never changed after it was made, so it may be shared.
type Shape struct {
	Name    string // relation name in schema connector, e.g. t_orders
	OID     uint32
	Columns []Column // live columns in the table's order, the seven system columns included

	attributes int    // columns ever made, dropped ones included
	version    int64  // rises with every change of a column; see statement check
	hashIndex  string // name of the unique index on _row_hash
	keyIndex   string // name of the primary key's index, empty when there is none on id
	sequence   uint32 // OID of the sequence behind id
	full       string // why no column can be added, empty where that is for the counts to say
	byName     map[string]int
}

// Column is one live column.
type Column struct {
	Name       string
	Type       Class
	SQLType    string // as format_type writes it with an empty search path, e.g. "timestamp with time zone"
	NotNull    bool
	HasDefault bool
	Generated  bool // GENERATED ALWAYS AS (…) STORED: takes no value
	Identity   bool
	// Frozen is why the column's type cannot be changed now, for a dead letter; empty where it can. See [Shape.Refusing].
	Frozen string

	base             string // SQL type under a domain, else SQLType
	precision, scale int    // of Decimal
}

// Classes of column types, by what a value must be to fit them.
const (
	BigInt  Class = iota
	Money         // numeric(18,4), what a number with decimals becomes first
	Decimal       // numeric of another precision and scale
	Numeric       // numeric without limits
	Text
	Boolean
	JSONB
	Other // anything else: the server casts the value's text
)

// Class groups column types by the rule that says what fits.
type Class uint8

// Column finds a live column by its exact name.
func (s *Shape) Column(name string) (*Column, bool) {
	if s == nil {
		return nil, false
	}
	i, ok := s.byName[name]
	if !ok {
		return nil, false
	}
	return &s.Columns[i], true
}

// Room tells how many columns may still be added. When that is 0, why says which limit was met and what helps.
func (s *Shape) Room() (n int, why string) {
	live, ever := len(System), len(System)
	if s != nil {
		if s.full != "" {
			return 0, s.full
		}
		live, ever = len(s.Columns), s.attributes
	}
	if n = min(MaxColumns-live, maxAttributes-ever); n > 0 {
		return n, ""
	}
	if live >= MaxColumns {
		return 0, fmt.Sprintf("the table has %d columns, the limit is %d; \"layout\": \"document\" keeps the whole message in one column", live, MaxColumns)
	}
	return 0, fmt.Sprintf("the table has had %d columns, dropped ones count, and PostgreSQL allows %d; make the table anew, or use \"layout\": \"document\"",
		ever, maxAttributes)
}

// With gives the shape as it will be after alters, for the rows that travel with them. Adding a column that exists or
// widening one that does not is left out: the server will say so. s may be nil, for a table to be made.
func (s *Shape) With(alters []Alter) *Shape {
	next := Shape{attributes: len(System), byName: map[string]int{}}
	if s != nil {
		next = *s
		next.Columns, next.byName = slices.Clone(s.Columns), maps.Clone(s.byName)
	} else {
		next.Columns = slices.Clone(System)
		next.index()
	}
	for _, a := range alters {
		i, exists := next.byName[a.Column]
		c := NewColumn(a.Column, a.Type)
		switch {
		case a.Widen && exists:
			c.NotNull, c.HasDefault = next.Columns[i].NotNull, next.Columns[i].HasDefault
			next.Columns[i] = c
		case !a.Widen && !exists:
			next.byName[a.Column] = len(next.Columns)
			next.Columns = append(next.Columns, c)
			next.attributes++
		}
	}
	return &next
}

// Refusing gives the shape with what the server would not do marked: a column that was not to be widened is Frozen, and a
// column that was not to be added leaves no Room, so that the same chunk built again holds dead letters instead.
func (s *Shape) Refusing(refused []*Refused) *Shape {
	if s == nil || len(refused) == 0 {
		return s
	}
	next := *s
	next.Columns = slices.Clone(s.Columns)
	for _, r := range refused {
		if !r.Alter.Widen {
			next.full = r.Message
		} else if i, ok := next.byName[r.Alter.Column]; ok {
			next.Columns[i].Frozen = r.Message
		}
	}
	return &next
}

func (s *Shape) index() {
	s.byName = make(map[string]int, len(s.Columns))
	for i := range s.Columns {
		s.byName[s.Columns[i].Name] = i
	}
}

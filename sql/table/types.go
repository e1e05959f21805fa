package table

import (
	"regexp"
	"strconv"
	"strings"
)

// NewColumn makes a nullable column of an SQL type as an [Alter] names it. Short spellings are written out, so that the
// result equals what [Read] finds once the column exists.
func NewColumn(name, sqlType string) Column {
	c := Column{Name: name, SQLType: canonical(sqlType)}
	c.base = c.SQLType
	c.classify()
	return c
}

// classify sets Type, precision and scale from the column's SQL type. A domain is Other whatever it stands on, for its
// constraint is the server's to judge; its base still decides what would be rounded.
func (c *Column) classify() {
	class, ok := classes[c.base]
	c.precision, c.scale = 0, 0
	switch {
	case ok:
	case strings.HasPrefix(c.base, "numeric("):
		class = Decimal
		c.precision, c.scale = typmod(c.base)
	default:
		class = Other
	}
	if c.base != c.SQLType && class != Decimal {
		class = Other
	}
	c.Type = class
}

var classes = map[string]Class{
	"bigint": BigInt, "numeric(18,4)": Money, "numeric": Numeric, "text": Text, "boolean": Boolean, "jsonb": JSONB,
}

// typmod reads the two numbers of numeric(p,s) or numeric(p); the scale may be negative since PostgreSQL 15.
func typmod(sqlType string) (precision, scale int) {
	_, rest, _ := strings.Cut(sqlType, "(")
	p, s, _ := strings.Cut(strings.TrimSuffix(rest, ")"), ",")
	precision, _ = strconv.Atoi(strings.TrimSpace(p))
	scale, _ = strconv.Atoi(strings.TrimSpace(s))
	return precision, scale
}

func canonical(sqlType string) string {
	if long, ok := spellings[sqlType]; ok {
		return long
	}
	if limitedNumeric.MatchString(sqlType) {
		p, s := typmod(sqlType)
		return "numeric(" + strconv.Itoa(p) + "," + strconv.Itoa(s) + ")"
	}
	return sqlType
}

var limitedNumeric = regexp.MustCompile(`^numeric\( *\d{1,4} *(, *-?\d{1,4} *)?\)$`)

var spellings = map[string]string{
	"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone", "int": "integer", "int8": "bigint",
	"int4": "integer", "bool": "boolean", "float8": "double precision",
}

// makable is the closed list of types that a message or a manifest can give a column. A type goes into DDL as it is
// written, so nothing outside this list ever reaches a statement.
var makable = regexp.MustCompile(`^(bigint|integer|text|boolean|jsonb|date|uuid|bytea|double precision|` +
	`timestamp with(out)? time zone|numeric(\(\d{1,4},-?\d{1,4}\))?)$`)

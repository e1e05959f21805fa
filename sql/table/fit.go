package table

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// What a value means for a column.
const (
	Fits      Fit = iota // as it is
	Widens               // once the column is numeric; see [Wider]
	Conflicts            // not at all: the manifest's type_change says what happens, unless the column is Frozen
)

// Fit is the answer of [Column.Fit].
type Fit uint8

// Wider is the SQL type that a column gets for a value which [Widens] it.
const Wider = "numeric"

// Fit says what a value means for the column. It is called for every value and looks at text only where something could
// be rounded: a number in a column with limits, a [String] (unescaped) in a column whose type only people make. It
// allocates nothing but for floats.
//
// A text column takes everything as its JSON text, a jsonb column any value. A column of a type that only people make takes
// any value's text and leaves the cast to the server, unless the cast would round. Null fits everywhere; a NOT NULL column
// is the server's to defend.
func (c *Column) Fit(kind Kind, text []byte) Fit {
	if kind == Null {
		return Fits
	}
	switch c.Type {
	case Text, JSONB:
		return Fits
	case BigInt:
		return pick(kind == Int, kind == Number && c.Frozen == "")
	case Boolean:
		return pick(kind == Bool, false)
	case Numeric:
		return pick(kind == Int || kind == Number, false)
	case Money:
		number := kind == Int || kind == Number
		return pick(number && extentOf(text).within(18, 4), number && c.Frozen == "")
	case Decimal:
		return pick((kind == String || kind == Int || kind == Number) && c.holds(text), false)
	default:
		return pick(c.casts(kind, text), false)
	}
}

func pick(fits, widens bool) Fit {
	switch {
	case fits:
		return Fits
	case widens:
		return Widens
	default:
		return Conflicts
	}
}

// holds says whether a numeric(p,s) that someone chose takes the number without rounding it.
func (c *Column) holds(text []byte) bool {
	if c.scale < 0 {
		return trailingZeros(text) >= -c.scale && extentOf(text).within(c.precision, c.scale)
	}
	return extentOf(text).within(c.precision, c.scale)
}

// trailingZeros counts zeros before the point of a whole number without exponent; anything else counts as none.
func trailingZeros(text []byte) int {
	digits := bytes.TrimLeft(text, "-0")
	if len(digits) == 0 {
		return exponentMax // zero itself fits any scale
	}
	if bytes.ContainsAny(digits, ".eE") {
		return 0
	}
	return len(digits) - len(bytes.TrimRight(digits, "0"))
}

// casts says whether the server's cast of the text would keep the value; one it refuses outright becomes a dead letter.
func (c *Column) casts(kind Kind, text []byte) bool {
	number := kind == Int || kind == Number || kind == String
	switch {
	case number && c.base == "double precision":
		return exactFloat(text, 64)
	case number && c.base == "real":
		return exactFloat(text, 32)
	case number && c.base == "money":
		return extentOf(text).decimals <= moneyDecimals
	case number && c.base == "numeric(18,4)":
		return extentOf(text).within(18, 4)
	case kind == String && strings.HasPrefix(c.base, "time"):
		return secondsDecimals(text) <= c.timePrecision()
	default:
		return true
	}
}

// moneyDecimals is what the type money keeps under most locales; those that keep fewer would round, and refuse nothing.
const moneyDecimals = 2

// exactFloat says whether a float gives back the very number that was put in. 0.1 does, for the server prints the shortest
// text that reads back as the same float; a number of twenty digits does not. Text that is no number is left to the server.
func exactFloat(text []byte, bits int) bool {
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		return errors.Is(err, strconv.ErrSyntax)
	}
	var buf [32]byte
	return sameNumber(text, strconv.AppendFloat(buf[:0], f, 'e', -1, bits))
}

// sameNumber compares two numbers by their significant digits and where the point stands.
func sameNumber(a, b []byte) bool {
	if extentOf(a) != extentOf(b) {
		return false
	}
	da, db := significant(a), significant(b)
	return bytes.Equal(da, db) && (len(da) == 0 || bytes.HasPrefix(a, minus) == bytes.HasPrefix(b, minus))
}

var minus = []byte("-")

func significant(text []byte) []byte {
	mantissa, _ := cutExponent(text)
	out := make([]byte, 0, len(mantissa))
	for _, ch := range mantissa {
		if ch >= '0' && ch <= '9' {
			out = append(out, ch)
		}
	}
	return bytes.Trim(out, "0")
}

// secondsDecimals counts the digits behind a time's seconds without trailing zeros: "…12.500Z" has one.
func secondsDecimals(text []byte) int {
	colon := bytes.IndexByte(text, ':')
	if colon < 0 {
		return 0
	}
	point := bytes.IndexByte(text[colon:], '.')
	if point < 0 {
		return 0
	}
	n := 0
	for i, ch := range text[colon+point+1:] {
		if ch < '0' || ch > '9' {
			break
		}
		if ch != '0' {
			n = i + 1
		}
	}
	return n
}

// timeDecimals is what a time type keeps when it names no precision.
const timeDecimals = 6

func (c *Column) timePrecision() int {
	_, rest, ok := strings.Cut(c.base, "(")
	if !ok {
		return timeDecimals
	}
	n, err := strconv.Atoi(rest[:max(strings.IndexByte(rest, ')'), 0)])
	if err != nil {
		return timeDecimals
	}
	return n
}

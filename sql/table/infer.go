package table

import "math"

// Seen gathers what one chunk shows of a field that has no column yet. The zero value has seen nothing.
type Seen struct {
	kinds   uint8 // bit k: a value of Kind k
	inexact bool  // a number that numeric(18,4) cannot hold exactly
}

// Add takes note of one value. text is looked at for a [Number] only.
func (s *Seen) Add(kind Kind, text []byte) {
	s.kinds |= 1 << kind
	if kind == Number && !s.inexact {
		s.inexact = !extentOf(text).within(18, 4)
	}
}

// Infer gives the SQL type of the column that a field becomes, by what its first chunk showed of it.
//
// Whole and decimal numbers together become numeric, anything together with an object or array jsonb, any other mixture
// text; a field that was null throughout becomes text, which takes whatever comes later.
func Infer(seen Seen) string {
	switch kinds := seen.kinds &^ (1 << Null); kinds {
	case 1 << Int:
		return "bigint"
	case 1 << Number:
		if seen.inexact {
			return "numeric"
		}
		return "numeric(18,4)"
	case 1<<Int | 1<<Number:
		return "numeric"
	case 1 << Bool:
		return "boolean"
	default:
		if kinds&(1<<JSON) != 0 {
			return "jsonb"
		}
		return "text"
	}
}

// extent is how many digits a number needs on either side of its point once it is written without exponent and without
// needless zeros; 0.05 has 0 whole digits and 2 decimals.
type extent struct{ whole, decimals int }

// exponentMax is where an exponent stops being counted: no numeric column holds such a number, and sums stay in range.
const exponentMax = math.MaxInt32 / 4

// extentOf measures a number's JSON text without writing it out, so 1e999999999 costs no memory. Text that is no JSON
// number has no meaningful extent.
func extentOf(text []byte) extent {
	mantissa, exponent := cutExponent(text)
	point, digits, first, last := -1, 0, -1, -1
	for _, ch := range mantissa {
		switch {
		case ch == '.':
			point = digits
		case ch >= '0' && ch <= '9':
			if ch != '0' {
				if first < 0 {
					first = digits
				}
				last = digits
			}
			digits++
		}
	}
	if first < 0 {
		return extent{}
	}
	if point < 0 {
		point = digits
	}
	point += exponentOf(exponent)
	return extent{whole: max(0, point-first), decimals: max(0, last+1-point)}
}

func cutExponent(text []byte) (mantissa, exponent []byte) {
	for i, ch := range text {
		if ch == 'e' || ch == 'E' {
			return text[:i], text[i+1:]
		}
	}
	return text, nil
}

func exponentOf(text []byte) (e int) {
	negative := false
	for _, ch := range text {
		switch {
		case ch == '-':
			negative = true
		case ch >= '0' && ch <= '9' && e < exponentMax:
			e = e*10 + int(ch-'0')
		}
	}
	if e = min(e, exponentMax); negative {
		return -e
	}
	return e
}

// within says whether numeric(precision, scale) holds the number exactly. A negative scale asks for zeros before the point,
// which extent does not count: such a column is judged by its value's digits only where there are none after the point.
func (e extent) within(precision, scale int) bool {
	return e.decimals <= max(scale, 0) && e.whole <= precision-scale
}

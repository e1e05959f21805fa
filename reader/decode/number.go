package decode

import "bytes"

// int64Max and int64Min are the digits of the bounds of int64.
const (
	int64Max = "9223372036854775807"
	int64Min = "9223372036854775808"
)

// numberKind tells whether a JSON number is a whole number within int64. JSON allows no leading zeros, so the count of
// digits decides all but the nineteenth.
func numberKind(raw []byte) Kind {
	bound, whole := int64Max, raw
	if raw[0] == '-' {
		bound, whole = int64Min, raw[1:]
	}
	for _, ch := range whole {
		if ch < '0' || ch > '9' {
			return Number
		}
	}
	if len(whole) < len(bound) || len(whole) == len(bound) && string(whole) <= bound {
		return Int
	}
	return Number
}

// exponentCap is where an exponent stops being counted: far beyond [digitsMax], far within int.
const exponentCap = 1 << 30

// digits counts the digits that a JSON number has once it is written out, before and after its point, without writing it
// out: 1e3 has four, 0.05 three, 1e4294967296 too many. A zero has as many decimals as it asks for, since numeric keeps them.
// Text that is no number gives some count.
func digits(raw []byte) int {
	point, count, first, i := -1, 0, -1, 0
	for ; i < len(raw) && raw[i]|0x20 != 'e'; i++ {
		switch ch := raw[i]; {
		case ch == '.':
			point = count
		case ch >= '0' && ch <= '9':
			if first < 0 && ch != '0' {
				first = count
			}
			count++
		}
	}
	if point < 0 {
		point = count
	}
	exponent := 0
	if i < len(raw) {
		exponent = exponentOf(raw[i+1:])
	}
	decimals := max(0, count-point-exponent)
	if first < 0 {
		// Zero times any power is zero, but PostgreSQL refuses exponents that do not fit its own counter.
		if exponent >= exponentCap {
			return exponentCap
		}
		return 1 + decimals
	}
	return max(1, point-first+exponent) + decimals
}

func exponentOf(text []byte) int {
	text, negative := bytes.CutPrefix(text, []byte("-"))
	e := 0
	for _, ch := range text {
		if ch < '0' || ch > '9' {
			continue
		}
		if e = e*10 + int(ch-'0'); e >= exponentCap {
			e = exponentCap
			break
		}
	}
	if negative {
		return -e
	}
	return e
}

// survey is what a first look over an object or array found, before it is parsed: neither depth nor an exponent nor the
// bookkeeping of keys is to cost a stack or memory.
type survey struct {
	deep int // offset of the first bracket beyond depthMax, which ends the survey; -1 for none
	long int // offset of the first number beyond digitsMax; -1 for none
	keys int // names in it, at any depth
}

// surveyed looks over the object or array that begins at pos. The text may be anything; only once it has proved to be JSON
// do long and keys mean something.
func surveyed(body []byte, pos int) survey {
	s := survey{deep: -1, long: -1}
	depth := 1 // the message's own object
	for i := pos; i < len(body); {
		switch ch := body[i]; {
		case ch == '"':
			i = stringEnd(body, i)
			continue
		case ch == ':':
			s.keys++
		case ch == '{' || ch == '[':
			if depth++; depth > depthMax {
				s.deep = i
				return s
			}
		case ch == '}' || ch == ']':
			if depth--; depth <= 1 {
				return s
			}
		case ch >= '0' && ch <= '9':
			end := numberEnd(body, i)
			if s.long < 0 && digits(body[i:end]) > digitsMax {
				s.long = i
			}
			i = end
			continue
		}
		i++
	}
	return s
}

// stringEnd gives the position after the string that begins at pos, or the end of the text.
func stringEnd(body []byte, pos int) int {
	for i := pos + 1; ; {
		n := bytes.IndexByte(body[i:], '"')
		if n < 0 {
			return len(body)
		}
		i += n
		if backslashes(body[pos+1:i])%2 == 0 {
			return i + 1
		}
		i++
	}
}

// numberEnd gives the position after the run of number characters that begins at pos.
func numberEnd(body []byte, pos int) int {
	for pos < len(body) {
		switch ch := body[pos]; {
		case ch >= '0' && ch <= '9', ch == '.', ch == '+', ch == '-', ch|0x20 == 'e':
			pos++
		default:
			return pos
		}
	}
	return pos
}

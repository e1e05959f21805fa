package decode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what a refusal quotes, in bytes.
const (
	messageMax = 300
	quoteMax   = 40
)

// Refusal says why a value is no row. It never quotes more than a few safe characters of the value.
type Refusal struct {
	Field   string // the top-level field at fault, or a path such as o.k[0]; empty when the whole value is
	Message string // printable, no NUL, valid UTF-8, at most 300 bytes
}

func (r *Refusal) Error() string { return r.Message }

// refuse makes a refusal; where is empty or names the place.
func refuse(where, format string, args ...any) *Refusal {
	m := fmt.Sprintf(format, args...)
	if where != "" {
		m += ", in field " + where
	}
	return &Refusal{Field: where, Message: bound(m, messageMax)}
}

// bound cuts s to at most limit bytes between two characters.
func bound(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Quote shows the beginning of text in quotes, at most 40 bytes of it, with everything escaped that does not print.
func Quote[T ~[]byte | ~string](text T) string { return QuoteUpTo(text, quoteMax) }

// QuoteUpTo is [Quote] with another bound, in bytes between the quotes.
func QuoteUpTo[T ~[]byte | ~string](text T, limit int) string {
	s, more := string(text[:min(len(text), limit)]), len(text) > limit
	var b strings.Builder
	b.WriteByte('"')
	for len(s) > 0 {
		_, n := utf8.DecodeRuneInString(s)
		shown := strconv.Quote(s[:n])
		if shown = shown[1 : len(shown)-1]; b.Len()+len(shown) > limit+1 || more && !utf8.FullRuneInString(s) {
			more = true
			break
		}
		b.WriteString(shown)
		s = s[n:]
	}
	if more {
		b.WriteString("…")
	}
	b.WriteByte('"')
	return b.String()
}

var (
	markUTF8    = []byte{0xEF, 0xBB, 0xBF}
	markUTF16BE = []byte{0xFE, 0xFF}
	markUTF16LE = []byte{0xFF, 0xFE}
)

// objectAt finds the brace that opens the value's object, or says what the value is instead.
func objectAt(value []byte) (int, *Refusal) {
	start := 0
	if bytes.HasPrefix(value, markUTF8) {
		start = len(markUTF8)
	}
	for start < len(value) && isSpace(value[start]) {
		start++
	}
	if start < len(value) && value[start] == '{' {
		return start, nil
	}
	return 0, noObject(value, value[start:])
}

// framingBytes is how Schema Registry's clients begin a value: a zero byte and a schema id of four bytes.
const framingBytes = 5

func noObject(value, text []byte) *Refusal {
	switch {
	case len(value) == 0:
		return refuse("", "empty value: it has zero bytes, and is neither a JSON object nor a tombstone")
	case len(text) == 0:
		return refuse("", "empty value: it holds nothing but white space or a byte order mark")
	case value[0] == 0 && len(value) >= framingBytes:
		return refuse("", "not JSON: the value looks like Schema Registry framing (first byte 00, schema id %d), and JSON is expected",
			binary.BigEndian.Uint32(value[1:framingBytes]))
	case bytes.HasPrefix(value, markUTF16BE), bytes.HasPrefix(value, markUTF16LE):
		return refuse("", "not UTF-8: the value begins with the byte order mark of UTF-16 (%x)", value[:2])
	}
	if at := invalidUTF8(value); at >= 0 {
		return notUTF8(value, at, "")
	}
	whole := bytes.TrimRight(text, " \t\r\n")
	switch {
	case string(whole) == "null":
		return refuse("", "not an object: the value is the literal null, which is not a tombstone")
	case !jsontext.Value(whole).IsValid():
		return refuse("", "not JSON: the value begins with %s", Quote(whole))
	}
	switch whole[0] {
	case '[':
		return refuse("", "not an object: the value is an array")
	case '"':
		return refuse("", "not an object: the value is a string")
	case 't', 'f':
		return refuse("", "not an object: the value is a boolean")
	default:
		return refuse("", "not an object: the value is a number")
	}
}

// invalidUTF8 gives the position of the first byte that is not UTF-8, or -1.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func notUTF8(text []byte, at int, where string) *Refusal {
	return refuse(where, "not UTF-8: byte %02x at offset %d", text[at], at)
}

// syntax puts what jsontext found into our words.
func (d *Decoder) syntax(err error) *Refusal {
	var se *jsontext.SyntacticError
	if !errors.As(err, &se) {
		return refuse("", "not JSON: %s", Quote(err.Error()))
	}
	at := min(int(se.ByteOffset), len(d.body))
	if bad := invalidUTF8(d.body); bad >= 0 && bad <= at+utf8.UTFMax {
		return notUTF8(d.body, bad, d.path(bad))
	}
	rest := d.body[at:]
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		if where := d.path(at); where != "" {
			return refuse(where, "the key %s appears twice", Quote(se.JSONPointer.LastToken()))
		}
		return &Refusal{Field: segment(se.JSONPointer.LastToken()), Message: "the key " + Quote(se.JSONPointer.LastToken()) + " appears twice"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(d.path(at), "not JSON: the value ends in the middle of its object, after %d bytes", len(d.body))
	case isSurrogate(rest):
		return refuse(d.path(at), "the text holds an unpaired surrogate (%s)", rest[:len(`\ud800`)])
	}
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(rest, []byte(word)) || at > 0 && bytes.HasPrefix(d.body[at-1:], []byte(word)) {
			return refuse(d.path(at), "not JSON: %s is no JSON number", word)
		}
	}
	what := ""
	if se.Err != nil {
		what = ": " + bound(strings.ToValidUTF8(se.Err.Error(), "?"), 2*quoteMax)
	}
	return refuse(d.path(at), "not JSON at offset %d%s", at, what)
}

// isSurrogate tells whether text begins with the escape of half a character; in a message that jsontext has refused there
// it is the half without its other one.
func isSurrogate(text []byte) bool {
	if len(text) < len(`\ud800`) || text[0] != '\\' || text[1] != 'u' || text[2]|0x20 != 'd' {
		return false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return err == nil && n >= 0xD800 && n < 0xE000
}

func (d *Decoder) tooDeep(at int) *Refusal {
	return refuse(d.path(at), "nested deeper than %d levels, at offset %d", depthMax, at)
}

func (d *Decoder) tooLong(at int) *Refusal {
	end := numberEnd(d.body, at)
	return refuse(d.path(at), "the number %s is out of range: written out it has more than %d digits", clip(d.body[at:end]), digitsMax)
}

// clip shows the beginning of a number or another run of plain characters.
func clip(text []byte) string {
	if len(text) > quoteMax {
		return string(text[:quoteMax]) + "…"
	}
	return string(text)
}

func (d *Decoder) nul(at int) *Refusal {
	return refuse(d.path(at), `the text holds NUL (\u0000), which the database cannot store`)
}

func (d *Decoder) trailing(at int) *Refusal {
	if bad := invalidUTF8(d.body); bad >= 0 {
		return notUTF8(d.body, bad, "")
	}
	return refuse("", "trailing data after the object, at offset %d: %s", at, Quote(d.body[at:]))
}

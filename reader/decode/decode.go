// Package decode takes a message's value apart without copying it: one JSON object into its top-level fields, in the
// order they were written, with every number as its text and every fault found before the database could find it.
//
// It knows neither Kafka nor PostgreSQL. **A value is handed on exactly or refused; nothing is rounded, nulled or
// mended.** What a field becomes is for package build to say.
package decode

// Kinds of a JSON value. Int is a whole number within int64; Number any other: with a point, an exponent, or beyond int64.
const (
	Null Kind = iota
	Bool
	Int
	Number
	String
	Object
	Array
)

// Kind tells the JSON type of a field's value.
type Kind uint8

// Field is one top-level member of an object. Name and Raw may alias the decoder's input and its own buffers, and are
// valid until the next call that decodes with the same Decoder, except where the doc of [Decoder] says otherwise.
type Field struct {
	Name  []byte // unescaped
	Raw   []byte // the value's JSON text as written; strings with their quotes
	Kind  Kind
	Plain bool // a string without escapes: Raw[1:len(Raw)-1] is its text
}

// Refusal says why a value is no row. It never quotes more than a few safe characters of the value.
type Refusal struct {
	Field   string // the top-level field at fault, or a path such as o.k[0]; empty when the whole value is
	Message string // printable, no NUL, valid UTF-8
}

func (r *Refusal) Error() string { return r.Message }

// Package decode takes a message's value apart without copying it: one JSON object into its top-level fields, in the
// order they were written, with every number as its text and every fault found before the database could find it.
//
// It knows neither Kafka nor PostgreSQL. **A value is handed on exactly or refused; nothing is rounded, nulled or
// mended.** What a field becomes is for package build to say.
//
// Types to know: a [Decoder] gives [Field] values, or a [Refusal] that says in printable words why the value is no row.
// Grammar, duplicate keys, UTF-8 and surrogates are judged by jsontext; depth, digits and NUL by this package.
package decode

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

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

// Limits of what is read. They keep one message from costing a stack or a numeric of megabytes.
const (
	depthMax  = 512  // objects and arrays within one another, the message's own object included
	digitsMax = 1000 // digits of a number once it is written out without exponent
	keysMax   = 1e6  // keys of a message at any depth: to find repeated ones each is remembered while it is read
)

// Field is one top-level member of an object. Name and Raw alias the input, but for names with escapes, which lie in the
// decoder's own buffer and are valid until its next call.
type Field struct {
	Name  []byte // unescaped
	Raw   []byte // the value's JSON text as written; strings with their quotes
	Kind  Kind
	Plain bool // a string without escapes: Raw[1:len(Raw)-1] is its text
}

// Decoder decodes one value after the other without allocating. It must not be used by two goroutines at once.
type Decoder struct {
	json  *jsontext.Decoder
	input bytes.Buffer // the value being decoded; jsontext reads a Buffer in place
	names []byte       // unescaped names
	keys  int          // keys seen at any depth
	body  []byte
	canon canon
}

// New makes a decoder.
func New() *Decoder {
	d := &Decoder{}
	d.json = jsontext.NewDecoder(&d.input)
	return d
}

// Object appends the fields of the JSON object that value holds to into, in their order; an empty object has none. A byte
// order mark before the object is skipped. Everything that cannot become a row is refused, with the fields seen so far:
// another value than an object, faulty JSON, a repeated key at any depth, an empty key at the top, text that is not UTF-8
// or holds NUL, more than 512 levels, a number of more than 1,000 digits, more than a million keys.
func (d *Decoder) Object(value []byte, into []Field) ([]Field, *Refusal) {
	start, refusal := objectAt(value)
	if refusal != nil {
		return into, refusal
	}
	if cap(d.names) > keptBytes {
		d.names = nil
	}
	d.input = *bytes.NewBuffer(value[start:])
	d.json.Reset(&d.input)
	d.names, d.keys, d.body = d.names[:0], 0, value[start:]
	if _, err := d.json.ReadToken(); err != nil {
		return into, d.syntax(err)
	}
	escapes := bytes.IndexByte(d.body, '\\') >= 0
	for {
		pos := d.spaces(int(d.json.InputOffset()))
		if pos < len(d.body) && d.body[pos] == '}' {
			break
		}
		f, refusal := d.field(escapes)
		if refusal != nil {
			return into, refusal
		}
		into = append(into, f)
	}
	return into, d.close(escapes)
}

// Document gives the object that the last call of [Decoder.Object] decoded, as written, without what stood around it.
func (d *Decoder) Document() []byte { return d.body }

// field reads one name and its value. escapes says whether there is a backslash anywhere in the message: where there is
// none, as mostly, no string needs to be searched for one.
func (d *Decoder) field(escapes bool) (Field, *Refusal) {
	name, err := d.json.ReadValue()
	if err != nil {
		return Field{}, d.syntax(err)
	}
	f := Field{Name: name[1 : len(name)-1]}
	if len(f.Name) == 0 {
		return f, &Refusal{Message: "a key is empty, and no column can bear an empty name"}
	}
	if escapes && bytes.IndexByte(name, '\\') >= 0 {
		from := len(d.names)
		d.names = AppendText(d.names, name)
		f.Name = d.names[from:]
	}
	look := survey{long: -1}
	if pos := d.spaces(d.spaces(int(d.json.InputOffset())) + 1); pos < len(d.body) && (d.body[pos] == '{' || d.body[pos] == '[') {
		if look = surveyed(d.body, pos); look.deep >= 0 {
			return f, d.tooDeep(look.deep)
		}
	}
	if d.keys += 1 + look.keys; d.keys > keysMax {
		return f, refuse(d.path(int(d.json.InputOffset())+1), "the object has more than %d keys", int(keysMax))
	}
	if f.Raw, err = d.json.ReadValue(); err != nil {
		return f, d.syntax(err)
	}
	switch f.Raw[0] {
	case 'n':
		f.Kind = Null
	case 't', 'f':
		f.Kind = Bool
	case '"':
		f.Kind = String
		f.Plain = !escapes || bytes.IndexByte(f.Raw, '\\') < 0
	case '{':
		f.Kind = Object
	case '[':
		f.Kind = Array
	default:
		if f.Kind = numberKind(f.Raw); f.Kind == Number && digits(f.Raw) > digitsMax {
			look.long = int(d.json.InputOffset()) - len(f.Raw)
		}
	}
	if look.long >= 0 {
		return f, d.tooLong(look.long)
	}
	return f, nil
}

// close reads the object's end and looks at what stands after it, and at the one thing that is fine JSON and fits no
// database text: NUL.
func (d *Decoder) close(escapes bool) *Refusal {
	if _, err := d.json.ReadToken(); err != nil {
		return d.syntax(err)
	}
	end := int(d.json.InputOffset())
	if rest := d.spaces(end); rest < len(d.body) {
		return d.trailing(rest)
	}
	d.body = d.body[:end]
	if escapes {
		if at := nulEscape(d.body); at >= 0 {
			return d.nul(at)
		}
	}
	return nil
}

// spaces gives the first position from pos on that holds no JSON white space.
func (d *Decoder) spaces(pos int) int {
	for pos < len(d.body) && isSpace(d.body[pos]) {
		pos++
	}
	return pos
}

func isSpace(ch byte) bool { return ch == ' ' || ch == '\n' || ch == '\r' || ch == '\t' }

// nulEscape finds \u0000 in valid JSON; one whose backslash is itself escaped is text.
func nulEscape(body []byte) int {
	for from := 0; ; {
		i := bytes.Index(body[from:], []byte(`\u0000`))
		if i < 0 {
			return -1
		}
		at := from + i
		if backslashes(body[:at])%2 == 0 {
			return at
		}
		from = at + 1
	}
}

// backslashes counts those at the end of b.
func backslashes(b []byte) int {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}

package decode

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendText appends the text that a JSON string stands for. raw is valid JSON, with its quotes; what a [Decoder] gave is.
func AppendText(dst, raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw[1:len(raw)-1]...)
	}
	dst, _ = jsontext.AppendUnquote(dst, raw) // it fails on text that was no JSON string, and then gives what it could read
	return dst
}

// Tags of the canonical form. Each value begins with one, so that no two values share a form.
const (
	tagNull   = 'z'
	tagTrue   = 't'
	tagFalse  = 'f'
	tagNumber = 'n'
	tagString = 's'
	tagArray  = 'a'
	tagObject = 'o'
	tagDigest = 'h'
)

// AppendCanonical appends a form of the field's value that is the same for equal values and different for different ones:
// objects sorted by key at every depth, numbers as written, strings unescaped, white space left out. The name is not in it.
// It may be called for fields of any value and any decoder.
func (d *Decoder) AppendCanonical(dst []byte, f Field) []byte {
	switch f.Kind {
	case Null:
		return append(dst, tagNull)
	case Bool:
		return append(dst, f.Raw[0])
	case Int, Number:
		return appendSized(append(dst, tagNumber), f.Raw)
	case String:
		if f.Plain {
			return appendSized(append(dst, tagString), f.Raw[1:len(f.Raw)-1])
		}
	default: // objects and arrays are sorted below
	}
	dst, _ = d.canon.value(dst, f.Raw)
	if cap(d.canon.text) > keptBytes {
		d.canon = canon{} // one large message must not be paid for ever after
	}
	return dst
}

// keptBytes is up to what size a buffer is kept for the next message.
const keptBytes = 1 << 20

// appendSized appends a length and the text.
func appendSized(dst, text []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// collapseMin is the size in bytes from which an object's form is replaced by its digest. Without it an object that lies
// deep would be moved about once for every level above it.
const collapseMin = 4096

// canon walks through valid JSON once. Depth is bounded by the decoder, so recursion is.
type canon struct {
	members []member // of all open objects, outermost first
	text    []byte   // unescaped text, and members on their way to another place
}

// member is where an object's member lies in the output: its key, then its value up to end.
type member struct{ key, value, end uint32 }

// value appends the canonical form of the value that raw begins with, and gives what follows it.
func (c *canon) value(dst, raw []byte) (out, rest []byte) {
	switch raw[0] {
	case 'n':
		return append(dst, tagNull), raw[len("null"):]
	case 't':
		return append(dst, tagTrue), raw[len("true"):]
	case 'f':
		return append(dst, tagFalse), raw[len("false"):]
	case '"':
		return c.string(append(dst, tagString), raw)
	case '[':
		return c.array(append(dst, tagArray), raw)
	case '{':
		return c.object(dst, raw)
	}
	end := numberEnd(raw, 0)
	return appendSized(append(dst, tagNumber), raw[:end]), raw[end:]
}

func (c *canon) string(dst, raw []byte) (out, rest []byte) {
	end := stringEnd(raw, 0)
	if bytes.IndexByte(raw[:end], '\\') < 0 {
		return appendSized(dst, raw[1:end-1]), raw[end:]
	}
	c.text = AppendText(c.text[:0], raw[:end])
	return appendSized(dst, c.text), raw[end:]
}

// array appends each element behind a mark, and a closing mark: a count would have to be known first.
func (c *canon) array(dst, raw []byte) (out, rest []byte) {
	for raw = skipSpace(raw[1:]); raw[0] != ']'; {
		dst, raw = c.value(append(dst, ','), raw)
		if raw = skipSpace(raw); raw[0] == ',' {
			raw = skipSpace(raw[1:])
		}
	}
	return append(dst, ']'), raw[1:]
}

// object appends the members as they come and, where they were not in the order of their keys' bytes, once more in order.
func (c *canon) object(dst, raw []byte) (out, rest []byte) {
	start, first := len(dst), len(c.members)
	dst = append(dst, tagObject, 0, 0, 0, 0) // the number of members is filled in at the end
	for raw = skipSpace(raw[1:]); raw[0] != '}'; {
		key := len(dst)
		dst, raw = c.string(dst, raw)
		value := len(dst)
		dst, raw = c.value(dst, skipSpace(skipSpace(raw)[1:]))
		c.members = append(c.members, member{key: uint32(key - start), value: uint32(value - start), end: uint32(len(dst) - start)})
		if raw = skipSpace(raw); raw[0] == ',' {
			raw = skipSpace(raw[1:])
		}
	}
	members, form := c.members[first:], dst[start:]
	byKey := func(a, b member) int {
		return bytes.Compare(sized(form[a.key:a.value]), sized(form[b.key:b.value]))
	}
	if !slices.IsSortedFunc(members, byKey) {
		slices.SortFunc(members, byKey)
		c.text = append(c.text[:0], form...)
		dst = dst[:start+objectHead]
		for _, m := range members {
			dst = append(dst, c.text[m.key:m.end]...)
		}
	}
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(members)))
	c.members = c.members[:first]
	if len(dst)-start >= collapseMin {
		sum := sha256.Sum256(dst[start:])
		dst = append(append(dst[:start], tagDigest), sum[:]...)
	}
	return dst, raw[1:]
}

// objectHead is the tag and the number of members before an object's first member.
const objectHead = 5

// sized gives the text that [appendSized] appended.
func sized(form []byte) []byte {
	_, n := binary.Uvarint(form)
	return form[max(n, 0):]
}

func skipSpace(raw []byte) []byte {
	for len(raw) > 0 && isSpace(raw[0]) {
		raw = raw[1:]
	}
	return raw
}

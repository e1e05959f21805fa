package decode

import (
	"strconv"
	"strings"
	"unicode"
)

// pathMax bounds a path, in bytes; one that is longer loses its middle.
const pathMax = 120

// level is one open object or array on the way to a place in a message.
type level struct {
	array bool
	index int    // of an array's element
	key   []byte // of an object's member, with its quotes; nil before the first
	named bool   // the member's key is read, its value not yet ended
}

// path names the place of the body's byte at: the fields and indexes that lead to it, such as o.k[0]. A place in a key
// belongs to the object around it; in a key at the top it is that key's own field. It reads no further than to that place,
// and is meant for refusals only.
func (d *Decoder) path(at int) string {
	var levels []level
	body := d.body
	for i := 0; i < len(body) && i < at; {
		top := len(levels) - 1
		switch ch := body[i]; ch {
		case '{', '[':
			if top >= depthMax {
				return show(levels)
			}
			levels = append(levels, level{array: ch == '['})
		case '}', ']':
			if top >= 0 {
				levels = levels[:top]
			}
		case ',':
			if top >= 0 {
				levels[top].index++
				levels[top].named = false
			}
		case '"':
			end := stringEnd(body, i)
			if top >= 0 && !levels[top].array && !levels[top].named {
				if end > at && top > 0 || end == len(body) { // in a key, or in one that never ends
					levels[top].key = nil
					return show(levels)
				}
				levels[top].key, levels[top].named = body[i:end], true
			}
			i = end
			continue
		}
		i++
	}
	if n := len(levels); n > 0 && !levels[n-1].array && !levels[n-1].named {
		levels[n-1].key = nil // between two members
	}
	return show(levels)
}

func show(levels []level) string {
	var b strings.Builder
	for _, l := range levels {
		switch {
		case l.array:
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(l.index))
			b.WriteByte(']')
		case l.key != nil:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(segment(string(AppendText(nil, l.key))))
		}
	}
	s := b.String()
	if len(s) <= pathMax {
		return s
	}
	tail := strings.ToValidUTF8(s[len(s)-pathMax/3:], "")
	return bound(s, pathMax/2) + tail
}

// segment shows a key in a path: as it is where it cannot be misread, else quoted.
func segment(key string) string {
	plain := key != "" && len(key) <= quoteMax
	for _, r := range key {
		plain = plain && (r == '_' || r == '-' || r == ' ' || unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	if plain {
		return key
	}
	return Quote(key)
}

package build

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"highwater/reader/kafka"
	"highwater/sql/table"
)

// keyBytes is the column of keys that are no text.
const keyBytes = "_key_bytes"

// transport is a column that holds something about a message instead of out of it.
type transport struct {
	key     string // in the manifest's include
	name    string
	sqlType string
	write   func(b *Builder, dst []byte, m *message) []byte // COPY text
	some    bool                                            // only some rows need the column
}

// transportColumns in the order in which a table gets them.
var transportColumns = []transport{
	{key: "topic", name: "_topic", sqlType: "text", write: func(b *Builder, dst []byte, _ *message) []byte {
		return append(dst, b.o.Topic...)
	}},
	{key: "partition", name: "_partition", sqlType: "integer", write: func(_ *Builder, dst []byte, m *message) []byte {
		return strconv.AppendInt(dst, int64(m.partition), 10)
	}},
	{key: "offset", name: "_offset", sqlType: "bigint", write: func(_ *Builder, dst []byte, m *message) []byte {
		return strconv.AppendInt(dst, m.record.Offset, 10)
	}},
	{key: "timestamp", name: "_timestamp", sqlType: "timestamp with time zone", write: func(_ *Builder, dst []byte, m *message) []byte {
		return appendTimestamp(dst, m.record.Timestamp)
	}},
	{key: "key", name: "_key", sqlType: "text", write: func(_ *Builder, dst []byte, m *message) []byte {
		if m.record.Key == nil || !isText(m.record.Key) {
			return table.AppendNull(dst)
		}
		return table.AppendCopy(dst, m.record.Key)
	}},
	{key: "key", name: keyBytes, sqlType: "bytea", some: true, write: func(_ *Builder, dst []byte, m *message) []byte {
		if isText(m.record.Key) {
			return table.AppendNull(dst)
		}
		return appendBytes(dst, m.record.Key)
	}},
	{key: "headers", name: "_headers", sqlType: "jsonb", write: func(b *Builder, dst []byte, m *message) []byte {
		b.scratch = appendHeaders(b.scratch[:0], m.record.Headers)
		return table.AppendCopy(dst, b.scratch)
	}},
	{key: "tombstone", name: "_tombstone", sqlType: "boolean", write: func(_ *Builder, dst []byte, m *message) []byte {
		return strconv.AppendBool(dst, m.record.Value == nil)
	}},
}

func transportsOf(include []string) []transport {
	var out []transport
	for _, t := range transportColumns {
		if slices.Contains(include, t.key) {
			out = append(out, t)
		}
	}
	return out
}

// carry finds out which transport columns the table has. Those it has are the first in every row's text, but for one that
// the server fills itself.
func (b *Builder) carry() {
	v := &b.view
	for i := range b.transports {
		t := &b.transports[i]
		c, ok := v.shape.Column(t.name)
		switch {
		case !ok && t.some:
			v.lacksKeyBytes = true
		case !ok:
			v.missing = true
		case !c.Generated && !c.Identity:
			v.carried = append(v.carried, t)
		}
	}
}

// isText tells whether bytes can be a text in PostgreSQL. None at all can.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// Years that timestamptz holds and that need no era in their text.
const (
	yearMin = 1
	yearMax = 294275
)

// noTimestamp is what a broker says that has none.
const noTimestamp = -1

// badTimestamp says why a message's timestamp cannot be stored, or nothing.
func badTimestamp(ms int64) string {
	if y := time.UnixMilli(ms).UTC().Year(); y < yearMin || y > yearMax {
		return fmt.Sprintf("the message's timestamp, %d ms, is out of the range of the column _timestamp", ms)
	}
	return ""
}

func appendTimestamp(dst []byte, ms int64) []byte {
	if ms == noTimestamp {
		return table.AppendNull(dst)
	}
	return time.UnixMilli(ms).UTC().AppendFormat(dst, "2006-01-02 15:04:05.000+00")
}

// appendHeaders writes headers as JSON: an ordered array of [name, value], repeats kept. A text that is not UTF-8 or holds
// NUL becomes {"base64": "…"}; a header without value has null.
func appendHeaders(dst []byte, headers []kafka.Header) []byte {
	dst = append(dst, '[')
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendHeaderText(append(dst, '['), []byte(h.Key))
		dst = append(dst, ',')
		if h.Value == nil {
			dst = append(dst, "null"...)
		} else {
			dst = appendHeaderText(dst, h.Value)
		}
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

func appendHeaderText(dst, text []byte) []byte {
	if isText(text) {
		dst, _ = jsontext.AppendQuote(dst, text) // it fails on invalid UTF-8 only
		return dst
	}
	dst = append(dst, `{"base64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, text)
	return append(dst, `"}`...)
}

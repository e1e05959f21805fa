package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// bad is a message that can be no row, and what its letter must say. Value nil is a tombstone.
type bad struct {
	name   string
	value  []byte
	reason string
	says   []string
}

const malformed = "MalformedSource"

var bads = []bad{
	{"NUL in a string", []byte(`{"partner_id":1,"s":"a\u0000b"}`), malformed, []string{"field s", `\u0000`}},
	{"NUL deep in an array", []byte(`{"o":{"k":["\u0000"]}}`), malformed, []string{"o.k[0]", `\u0000`}},
	{"NUL in a key", []byte(`{"o":{"a\u0000":1}}`), malformed, []string{"field o", `\u0000`}},
	{"NUL in a column's name", []byte(`{"a\u0000b":1}`), malformed, []string{`\u0000`}},
	{"a bare NUL byte", []byte("{\"s\":\"a\x00b\"}"), malformed, []string{"not JSON"}},
	{"half a surrogate pair", []byte(`{"s":"\ud83d"}`), malformed, []string{"surrogate", "field s"}},
	{"a surrogate pair the wrong way round", []byte(`{"s":"\udc59\ud835"}`), malformed, []string{"surrogate", "field s"}},
	{"bytes that are not UTF-8", []byte("{\"s\":\"\xff\xfe\"}"), malformed, []string{"not UTF-8", "ff", "field s"}},
	{"UTF-16", []byte("\xff\xfe{\x00}\x00"), malformed, []string{"not UTF-8", "UTF-16"}},
	{"Schema Registry framing", []byte("\x00\x00\x00\x00\x07\x02\x04ab"), malformed, []string{"Schema Registry framing", "schema id 7"}},
	{"a cut object", []byte(`{"partner_id":1,"name":"Ly`), malformed, []string{"not JSON", "ends in the middle"}},
	{"trailing data", []byte("{\"id\":1}\n{\"id\":2}\n{bad"), malformed, []string{"trailing data"}},
	{"a number", []byte(`42`), malformed, []string{"not an object", "number"}},
	{"a string", []byte(`"x"`), malformed, []string{"not an object", "string"}},
	{"an array", []byte(`[{"a":1}]`), malformed, []string{"not an object", "array"}},
	{"true", []byte(`true`), malformed, []string{"not an object", "boolean"}},
	{"the four letters null", []byte(`null`), malformed, []string{"not an object", "null", "not a tombstone"}},
	{"no bytes", []byte{}, malformed, []string{"empty value", "zero bytes"}},
	{"only spaces", []byte(" \t\r\n "), malformed, []string{"empty value"}},
	{"a tombstone", nil, malformed, []string{"tombstone", "key 'bad'"}},
	{"a key twice", []byte(`{"a":1,"a":2}`), malformed, []string{`"a"`, "twice"}},
	{"a key twice, deep", []byte(`{"o":{"b":{"a":1,"a":2}}}`), malformed, []string{`"a"`, "twice", "o.b"}},
	{"a key of zero length", []byte(`{"":1,"partner_id":2}`), malformed, []string{"empty"}},
	{"an exponent over 2^32", []byte(`{"f":1e4294967296}`), malformed, []string{"out of range", "field f"}},
	{"an exponent under -2^32", []byte(`{"f":1e-4294967296}`), malformed, []string{"out of range", "field f"}},
	{"an exponent that no numeric holds", []byte(`{"f":1e200000}`), malformed, []string{"out of range", "field f"}},
	{"fourteen bytes that are 131,072 digits", []byte(`{"f":1e131071}`), malformed, []string{"out of range", "field f"}},
	{"the same, deep", []byte(`{"o":[{"f":1e131071}]}`), malformed, []string{"out of range", "o[0].f"}},
	{"a number of 1,001 digits", []byte(`{"f":1` + strings.Repeat("0", 1000) + `}`), malformed, []string{"out of range", "field f"}},
	{"NaN", []byte(`{"v":NaN}`), malformed, []string{"NaN", "field v"}},
	{"minus infinity", []byte(`{"v":-Infinity}`), malformed, []string{"Infinity", "field v"}},
	{"a level too deep", []byte(`{"o":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + `}`), malformed, []string{"512 levels", "field o"}},
	{"200,000 levels", []byte(`{"o":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}`), malformed, []string{"512 levels", "field o"}},
	{"a value over max_message_bytes", []byte(`{"s":"` + strings.Repeat("x", 600_000) + `"}`), "TooLarge", []string{"600008 bytes", "max_message_bytes", "500000"}},
	{"more fields than a table has columns", manyFields(1501), malformed, []string{"1501 fields", `"layout": "document"`}},
}

func manyFields(n int) []byte {
	b := []byte("{")
	for i := range n {
		b = fmt.Appendf(b, `"f%d":%d,`, i, i)
	}
	return append(b[:len(b)-1], '}')
}

// Each bad message alone on a topic, and in the middle of a good chunk: it becomes a dead letter that says why and keeps every
// byte, and its neighbours land.
func TestBadMessages(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	for i, c := range bads {
		t.Run(c.name, func(t *testing.T) {
			f := *f
			f.TB = t
			alone := f.topic(fmt.Sprintf("alone-%d", i), 1, nil)
			f.produceKeyed(alone, "bad", c.value)
			name := fmt.Sprintf("alone%d", i)
			f.declare(name, alone, `,"max_message_bytes":500000`)
			e := f.completed(name, 1, 0)
			f.says(e.Hint, "connector.dlq", e.RunID)
			f.want("<null>", "SELECT to_regclass('connector.t_"+name+"')")
			f.letter(name, c, 0)

			among := f.topic(fmt.Sprintf("among-%d", i), 1, nil)
			f.produce(among, 0, partners(0, 10)...)
			f.produceKeyed(among, "bad", c.value)
			f.produce(among, 0, partners(10, 10)...)
			name = fmt.Sprintf("among%d", i)
			f.declare(name, among, `,"max_message_bytes":500000`)
			if e := f.completed(name, 21, 20); e.Chunks != 1 || e.DeadLetters != 1 {
				t.Errorf("in the middle of a chunk: %+v", e)
			}
			if got := f.ids("t_" + name); got != "1000..1019" {
				t.Errorf("the neighbours are %s", got)
			}
			f.letter(name, c, 10)
		})
	}
}

// produceKeyed writes one record to partition 0.
func (f *fixture) produceKeyed(topic, key string, value []byte) {
	f.Helper()
	if err := f.kafka.ProduceSync(f.Context(), record(topic, key, value)).FirstErr(); err != nil {
		f.Fatal(err)
	}
}

// letter checks the one dead letter of a connector.
func (f *fixture) letter(name string, c bad, offset int64) {
	f.Helper()
	var (
		reason, message, topic, payload string
		key                             *string
		raw                             []byte
		at                              int64
	)
	err := f.pool.QueryRow(f.Context(), `SELECT reason, message, topic, payload::text, key, raw, "offset" FROM connector.dlq WHERE connector = $1 AND status = 'open' AND attempts = 1`, name).
		Scan(&reason, &message, &topic, &payload, &key, &raw, &at)
	if err != nil {
		f.Errorf("the dead letter of %s: %v", name, err)
		return
	}
	place := fmt.Sprintf("%s:0:%d", topic, offset)
	if reason != c.reason || at != offset || !strings.HasPrefix(message, fmt.Sprintf("%s:%d — ", place, offset)) {
		f.Errorf("the letter is %s at %d: %s", reason, at, message)
	}
	f.says(message, c.says...)
	if len(message) > 1000 || !utf8.ValidString(message) || strings.ContainsAny(message, "\n\t") {
		f.Errorf("the message is no line of text: %d bytes, %q", len(message), message[:min(len(message), 200)])
	}
	if key == nil || *key != "bad" {
		f.Errorf("the letter's key is %v", key)
	}
	if want := c.value; !bytes.Equal(raw, want) && len(want) <= 1<<20 || (raw == nil) != (want == nil || len(want) > 1<<20) {
		f.Errorf("the letter keeps %d bytes, want %d", len(raw), len(want))
	}
	f.shows(payload, place, offset, c.value)
}

// shows checks the payload of a letter: the value's beginning, up to 8,192 characters, as text or as base64.
func (f *fixture) shows(payload, place string, offset int64, value []byte) {
	f.Helper()
	var p struct {
		Raw            []string
		File, Encoding string
		Line           int64
	}
	if err := json.Unmarshal([]byte(payload), &p); err != nil || p.File != place || p.Line != offset {
		f.Errorf("the payload is %.300s, %v", payload, err)
		return
	}
	switch {
	case value == nil:
		if len(p.Raw) != 0 {
			f.Errorf("a tombstone's payload shows %q", p.Raw)
		}
	case len(p.Raw) != 1 || utf8.RuneCountInString(p.Raw[0]) > 8192:
		f.Errorf("the payload shows %d values", len(p.Raw))
	case p.Encoding == "base64":
		if b, err := base64.StdEncoding.DecodeString(p.Raw[0]); err != nil || !bytes.HasPrefix(value, b) || utf8.Valid(value) && bytes.IndexByte(value, 0) < 0 {
			f.Errorf("the payload shows %q in base64, %v", b, err)
		}
	case !bytes.HasPrefix(value, []byte(p.Raw[0])), len(p.Raw[0]) < min(len(value), 8192):
		f.Errorf("the payload shows %.100q of %.100q", p.Raw[0], value)
	}
}

// A letter that is met again after a reset is the same letter, one attempt more.
func TestALetterMetAgain(t *testing.T) {
	f := onFake(t)
	topic := f.topic("met", 1, nil)
	f.produce(topic, 0, append(partners(0, 3), "{", "[]")...)
	f.sidecar(nil)
	f.declare("met", topic, "")
	first := f.completed("met", 5, 3)
	f.want("true", `SELECT connector.dlq_discard(id) FROM connector.dlq WHERE "offset" = 3`)
	f.exec("SELECT connector.reset_cursor('met')")
	again := f.completed("met", 5, 3)
	if again.Duplicates != 3 || again.DeadLetters != 2 || first.DeadLetters != 2 {
		t.Errorf("read again: %+v", again)
	}
	f.want("2 2 2", "SELECT concat_ws(' ', count(*), min(attempts), count(*) FILTER (WHERE status = 'open' AND run_id = $1)) FROM connector.dlq", again.RunID)
}

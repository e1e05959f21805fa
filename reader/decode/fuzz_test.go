package decode

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// stricter are the reasons for which this package refuses what encoding/json takes.
var stricter = []string{"appears twice", "nested deeper", "out of range", "NUL", "unpaired surrogate", "not UTF-8", "a key is empty", "not an object", "more than 1000000 keys"}

// FuzzObject holds the decoder against encoding/json: what we accept it accepts, with the same fields; what we refuse it
// refuses too, or we say one of the reasons for which we are stricter.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		acme, wide, `{}`, `{"a":[1,{"b":"\u00e9\ud83d\ude00\\u0000"}],"c":-1.5e10}`, `{"a":1,"\u0061":2}`, `{"a":"\u0000"}`, "\xef\xbb\xbf{\"a\":null}", `{"a":1}x`, deepArrays(600),
		`{"a":1e1001}`, `{"":1}`, ` {"o":{"b":1,"a":{"d":[],"c":{}}}} `, `[1]`, `null`, "{\"a\":\"\xff\"}", `{"s":"\ud800"}`, `{"a":tru}`, `{"a":01}`,
	} {
		f.Add([]byte(s))
	}
	d := New()
	f.Fuzz(func(t *testing.T, value []byte) {
		fields, refusal := d.Object(value, nil)
		body := bytes.TrimPrefix(value, markUTF8)
		var std map[string]json.RawMessage
		err := json.Unmarshal(body, &std)
		if refusal != nil {
			checkPrintable(t, refusal)
			if err == nil && json.Valid(body) && !containsAny(refusal.Message, stricter) {
				t.Fatalf("refused %q, which encoding/json takes: %s", value, refusal.Message)
			}
			return
		}
		if err != nil || std == nil {
			t.Fatalf("took %q, which encoding/json refuses: %v", value, err)
		}
		if len(fields) != len(std) {
			t.Fatalf("%d fields, encoding/json has %d in %q", len(fields), len(std), value)
		}
		for _, field := range fields {
			compare(t, field, std[string(field.Name)])
		}
	})
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// compare checks one field against what encoding/json took for it, and that its canonical form does not depend on white
// space or on how strings are escaped.
func compare(t *testing.T, f Field, raw json.RawMessage) {
	t.Helper()
	if !bytes.Equal(bytes.TrimSpace(raw), f.Raw) {
		t.Fatalf("field %q is %q, encoding/json has %q", f.Name, f.Raw, raw)
	}
	if f.Kind == String {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil || s != string(AppendText(nil, f.Raw)) {
			t.Fatalf("text %q, encoding/json has %q (%v)", AppendText(nil, f.Raw), s, err)
		}
		if f.Plain && s != string(f.Raw[1:len(f.Raw)-1]) {
			t.Fatalf("%q is not plain", f.Raw)
		}
	}
	var value any
	n := json.NewDecoder(bytes.NewReader(raw))
	n.UseNumber()
	if err := n.Decode(&value); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(value) // sorts keys, escapes in its own way, keeps numbers
	if err != nil {
		t.Fatal(err)
	}
	fields, refusal := New().Object([]byte(`{"f":`+string(again)+`}`), nil)
	if refusal != nil {
		return // numbers of encoding/json are no longer ours where an invalid one slipped in; none is known
	}
	if a, b := New().AppendCanonical(nil, f), New().AppendCanonical(nil, fields[0]); !bytes.Equal(a, b) {
		t.Fatalf("%q and %q differ: %q, %q", f.Raw, again, a, b)
	}
}

package decode

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// show renders fields as name:kind:raw, so that a table row says all of them in one line.
func showFields(fields []Field) string {
	var b strings.Builder
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s:%c:%s", f.Name, "zbinsoa"[f.Kind], f.Raw)
	}
	return strings.ReplaceAll(b.String(), ":n:", ":N:")
}

func TestObjectGivesFieldsInOrderWithTheirText(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"empty object", `{}`, ``},
		{"white space around everything", " \t\r\n{ \"a\" : 1 , \"b\" :\n[ 1 ] } \n", `a:i:1 b:o:[ 1 ]`},
		{"order and number text kept", `{"z":1.10,"a":1e400,"m":9007199254740993}`, `z:N:1.10 a:N:1e400 m:i:9007199254740993`},
		{"byte order mark", "\xef\xbb\xbf{\"id\":1}", `id:i:1`},
		{
			"bounds of int64", `{"a":9223372036854775807,"b":-9223372036854775808,"c":9223372036854775808,"d":-9223372036854775809}`,
			`a:i:9223372036854775807 b:i:-9223372036854775808 c:N:9223372036854775808 d:N:-9223372036854775809`,
		},
		{"zeros", `{"a":0,"b":-0,"c":-0.0,"d":0e0}`, `a:i:0 b:i:-0 c:N:-0.0 d:N:0e0`},
		{"a whole number with an exponent or a point is a number", `{"a":1.0,"b":1e2,"c":1E+2}`, `a:N:1.0 b:N:1e2 c:N:1E+2`},
		{"strings that look like numbers", `{"zip":"007","e":"","x":"1e5"}`, `zip:s:"007" e:s:"" x:s:"1e5"`},
		{"null, booleans", `{"n":null,"t":true,"f":false}`, `n:z:null t:b:true f:b:false`},
		{"nested values as written", `{"a":[1,2],"b":[],"c":[[1],["x"]],"o":{"x":null}}`, `a:a:[1,2] b:a:[] c:a:[[1],["x"]] o:o:{"x":null}`},
		{"names that differ in case", `{"Id":1,"id":2,"ID":3}`, `Id:i:1 id:i:2 ID:i:3`},
		{"escaped names", `{"\u00e9":1,"a\"b":2,"\\":3}`, `é:i:1 a"b:i:2 \:i:3`},
		{"an empty key below the top", `{"o":{"":1}}`, `o:o:{"":1}`},
		{"surrogate pair", `{"s":"\ud83d\ude00"}`, `s:s:"\ud83d\ude00"`},
		{"an escaped backslash before u0000 is text", `{"s":"a\\u0000b"}`, `s:s:"a\\u0000b"`},
		{"a thousand digits", `{"a":1e999,"b":1e-999,"c":[1e999]}`, `a:N:1e999 b:N:1e-999 c:a:[1e999]`},
		{"leading zeros of a fraction are no digits of the whole", `{"a":0.001e1002}`, `a:N:0.001e1002`},
		{"zero with a large exponent is zero", `{"a":0e5000,"b":0.0e20}`, `a:N:0e5000 b:N:0.0e20`},
		{"an exponent with leading zeros", `{"a":1e0000000000000000000005}`, `a:N:1e0000000000000000000005`},
		{"512 levels", `{"o":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + `}`, `o:a:` + strings.Repeat("[", 511) + strings.Repeat("]", 511)},
		{"brackets in strings are no levels", `{"o":["` + strings.Repeat("[", 600) + `\"["]}`, `o:a:["` + strings.Repeat("[", 600) + `\"["]`},
	}
	d := New()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fields, refusal := d.Object([]byte(c.in), nil)
			if refusal != nil {
				t.Fatalf("refused: %s", refusal.Message)
			}
			want := strings.ReplaceAll(c.want, ":o:[ 1 ]", ":a:[ 1 ]")
			if got := showFields(fields); got != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// deepArrays is a message of n arrays in field o.
func deepArrays(n int) string {
	return `{"o":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
}

func TestObjectRefuses(t *testing.T) {
	cases := []struct{ name, in, field, say string }{
		{"zero bytes", ``, ``, `empty value: it has zero bytes`},
		{"only spaces", " \n ", ``, `empty value: it holds nothing but white space`},
		{"only a byte order mark", "\xef\xbb\xbf", ``, `empty value`},
		{"the literal null", `null`, ``, `not an object: the value is the literal null`},
		{"the literal null in spaces", ` null `, ``, `not an object: the value is the literal null`},
		{"a number", `42`, ``, `not an object: the value is a number`},
		{"a string", `"x"`, ``, `not an object: the value is a string`},
		{"an array", `[{"a":1}]`, ``, `not an object: the value is an array`},
		{"a boolean", `true`, ``, `not an object: the value is a boolean`},
		{"words", `hello`, ``, `not JSON: the value begins with "hello"`},
		{"schema registry framing", "\x00\x00\x00\x00\x07\x02\x04ab", ``, `looks like Schema Registry framing (first byte 00, schema id 7)`},
		{"a zero byte alone", "\x00{}", ``, `not JSON: the value begins with "\x00{}"`},
		{"UTF-16 little endian", "\xff\xfe{\x00}\x00", ``, `not UTF-8: the value begins with the byte order mark of UTF-16 (fffe)`},
		{"UTF-16 big endian", "\xfe\xff\x00{", ``, `not UTF-8: the value begins with the byte order mark of UTF-16 (feff)`},
		{"invalid UTF-8 in a string", "{\"id\":1,\"s\":\"a\xffb\"}", `s`, `not UTF-8: byte ff at offset 14, in field s`},
		{"invalid UTF-8 deep", "{\"o\":{\"k\":[\"\xc3\"]}}", `o.k[0]`, `not UTF-8: byte c3 at offset 12, in field o.k[0]`},
		{"invalid UTF-8 in a key", "{\"\xff\":1}", `"\xff"`, `not UTF-8: byte ff at offset 2`},
		{"an encoded surrogate", "{\"s\":\"\xed\xa0\x80\"}", `s`, `not UTF-8: byte ed`},
		{"NUL in a string", `{"id":1,"s":"a\u0000b"}`, `s`, `the text holds NUL (\u0000), which the database cannot store, in field s`},
		{"NUL deep", `{"id":1,"o":{"k":["\u0000"]}}`, `o.k[0]`, `in field o.k[0]`},
		{"NUL in a nested key", `{"id":2,"o":{"a\u0000":1}}`, `o`, `NUL (\u0000)`},
		{"NUL in a key", `{"a\u0000":1}`, `"a\x00"`, `NUL (\u0000)`},
		{"NUL behind an escaped backslash", `{"s":"\\\u0000"}`, `s`, `NUL`},
		{"a NUL byte in a string", "{\"s\":\"a\x00b\"}", `s`, `not JSON at offset`},
		{"lone high surrogate", `{"id":1,"s":"\ud83d"}`, `s`, `unpaired surrogate (\ud83d), in field s`},
		{"surrogates the wrong way round", `{"id":2,"s":"\udc59\ud835"}`, `s`, `unpaired surrogate (\udc59)`},
		{"lone surrogate deep", `{"o":[1,{"k":"\ud83dx"}]}`, `o[1].k`, `unpaired surrogate (\ud83d), in field o[1].k`},
		{"lone surrogate in a key", `{"\ud83d":1}`, ``, `unpaired surrogate`},
		{"a key twice", `{"x":1,"x":2}`, `x`, `the key "x" appears twice`},
		{"a key twice by an escape", `{"x":1,"\u0078":2}`, `x`, `the key "x" appears twice`},
		{"a key twice deep", `{"o":{"k":[{"x":1,"y":2,"x":3}]}}`, `o.k[0]`, `the key "x" appears twice, in field o.k[0]`},
		{"an empty key", `{"":1,"id":2}`, ``, `a key is empty`},
		{"trailing object", "{\"id\":1}\n{\"id\":2}\n{bad", ``, `trailing data after the object, at offset 9: "{\"id\":2}`},
		{"trailing NUL byte", "{}\x00", ``, `trailing data after the object, at offset 2: "\x00"`},
		{"trailing comma", `{"a":1,}`, ``, `not JSON at offset 6`},
		{"cut short", `{"a":[1,2`, `a[1]`, `not JSON: the value ends in the middle of its object, after 9 bytes, in field a[1]`},
		{"cut short after the brace", `{`, ``, `not JSON: the value ends in the middle`},
		{"NaN", `{"v":NaN}`, `v`, `NaN is no JSON number, in field v`},
		{"minus infinity", `{"v":-Infinity}`, `v`, `Infinity is no JSON number`},
		{"infinity in an array", `{"v":[1,Infinity]}`, `v[1]`, `Infinity is no JSON number, in field v[1]`},
		{"single quotes", `{'a':1}`, ``, `not JSON at offset 1`},
		{"a comment", `{"a":1/*x*/}`, `a`, `not JSON at offset 6`},
		{"a leading zero", `{"a":007}`, `a`, `not JSON at offset`},
		{"2^32 as exponent", `{"f":1e4294967296}`, `f`, `the number 1e4294967296 is out of range: written out it has more than 1000 digits, in field f`},
		{"2^64 as exponent", `{"f":1e18446744073709551616}`, `f`, `is out of range`},
		{"minus 2^32 as exponent", `{"f":1e-4294967296}`, `f`, `is out of range`},
		{"an exponent of 400 digits", `{"f":1e` + strings.Repeat("9", 400) + `}`, `f`, `is out of range`},
		{"1,001 digits by exponent", `{"f":1e1000}`, `f`, `is out of range`},
		{"1,001 digits written", `{"f":1` + strings.Repeat("0", 1000) + `}`, `f`, `is out of range`},
		{"1,001 decimals", `{"f":1e-1000}`, `f`, `is out of range`},
		{"zero with too many decimals", `{"f":0e-20000}`, `f`, `is out of range`},
		{"zero with an exponent beyond the server's counter", `{"f":0e4294967296}`, `f`, `is out of range`},
		{"a huge number deep", `{"o":{"a":[1,1e131071]}}`, `o.a[1]`, `the number 1e131071 is out of range`},
		{"513 levels", deepArrays(512), ``, `nested deeper than 512 levels`},
		{"200,000 levels", deepArrays(200_000), ``, `nested deeper than 512 levels`},
		{"more keys than are kept track of", `{"o":[` + strings.Repeat(`{"k":1},`, 1_000_000) + `0]}`, `o`, `more than 1000000 keys`},
		{"200,000 open brackets", `{"o":` + strings.Repeat(`{"a":`, 200_000), ``, `nested deeper than 512 levels`},
	}
	d := New()
	good := []byte(`{"a":"x","b":[1]}`)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, refusal := d.Object([]byte(c.in), nil)
			if refusal == nil {
				t.Fatal("not refused")
			}
			if !strings.Contains(refusal.Message, c.say) {
				t.Errorf("message %q lacks %q", refusal.Message, c.say)
			}
			if c.field != "" && refusal.Field != c.field {
				t.Errorf("field %q, want %q", refusal.Field, c.field)
			}
			checkPrintable(t, refusal)
			if fields, refusal := d.Object(good, nil); refusal != nil || showFields(fields) != `a:s:"x" b:a:[1]` {
				t.Errorf("the next value suffers: %v %v", fields, refusal)
			}
		})
	}
}

func checkPrintable(t *testing.T, r *Refusal) {
	t.Helper()
	if len(r.Message) > messageMax || !utf8.ValidString(r.Message) || r.Message == "" {
		t.Errorf("message of %d bytes is not bounded UTF-8: %q", len(r.Message), r.Message)
	}
	for _, s := range []string{r.Message, r.Field} {
		if i := strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }); i >= 0 {
			t.Errorf("%q does not print at byte %d", s, i)
		}
	}
}

func TestLongNamesAndPathsAreBounded(t *testing.T) {
	d := New()
	long := strings.Repeat("é\\u0000", 5000)
	for _, in := range []string{
		`{"` + long + `":1}`,
		`{"a":{"` + long + `":1}}`,
		`{"` + strings.Repeat("k", 70000) + `":NaN}`,
		`{"a":{"` + strings.Repeat("k", 70000) + `":{"` + strings.Repeat("ü", 70000) + `":"\u0000"}}}`,
		`{"o":` + strings.Repeat(`{"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk":`, 400) + `"\u0000"` + strings.Repeat("}", 401),
		`{"` + strings.Repeat("x", 3000) + `":1,"` + strings.Repeat("x", 3000) + `":1}`,
		strings.Repeat("\u202e", 3000),
	} {
		_, refusal := d.Object([]byte(in), nil)
		if refusal == nil {
			t.Fatalf("not refused: %.40s", in)
		}
		checkPrintable(t, refusal)
	}
}

func TestDocumentIsTheObjectAsWritten(t *testing.T) {
	d := New()
	if _, refusal := d.Object([]byte("\xef\xbb\xbf \n{ \"a\" : 1 }\n "), nil); refusal != nil {
		t.Fatal(refusal)
	}
	if got := string(d.Document()); got != `{ "a" : 1 }` {
		t.Fatalf("got %q", got)
	}
}

func TestAppendTextUnescapes(t *testing.T) {
	cases := map[string]string{
		`"plain"`: "plain", `""`: "", `"a\"b\\c\/d"`: `a"b\c/d`, `"\b\f\n\r\t"`: "\b\f\n\r\t", `"\u00e9\ud83d\ude00"`: "é😀", `"\\u0041"`: `\u0041`,
	}
	for in, want := range cases {
		if got := string(AppendText([]byte("."), []byte(in))); got != "."+want {
			t.Errorf("%s: got %q, want %q", in, got, "."+want)
		}
	}
}

func canonical(t *testing.T, object string) string {
	t.Helper()
	d := New()
	fields, refusal := d.Object([]byte(object), nil)
	if refusal != nil {
		t.Fatalf("%s: %s", object, refusal.Message)
	}
	var out []byte
	for _, f := range fields {
		out = d.AppendCanonical(out, f)
	}
	return string(out)
}

func TestCanonicalFormIsOneForEqualValues(t *testing.T) {
	big := strings.Repeat("x", 2*collapseMin)
	for _, pair := range [][2]string{
		{`{"a":"é"}`, `{"a":"\u00e9"}`},
		{`{"a":"/"}`, `{"a":"\/"}`},
		{`{"a":{"x":1,"y":[2,{"k":3,"j":4}]}}`, `{"a": { "y" : [ 2 , {"j":4,"k":3} ], "x":1 } }`},
		{`{"a":{"\u0061":1,"b":2}}`, `{"a":{"b":2,"a":1}}`},
		{`{"a":{"o":{"s":"` + big + `","a":1},"b":2}}`, `{"a":{"b":2,"o":{"a":1,"s":"` + big + `"}}}`},
		{`{"a":[]}`, `{"a":[ ]}`},
		{`{"a":{}}`, `{"a":{ }}`},
	} {
		if canonical(t, pair[0]) != canonical(t, pair[1]) {
			t.Errorf("differ: %.80s and %.80s", pair[0], pair[1])
		}
	}
}

func TestCanonicalFormDiffersForDifferentValues(t *testing.T) {
	values := []string{
		`1`, `1.0`, `1e0`, `"1"`, `true`, `"true"`, `false`, `null`, `"null"`, `""`, `[]`, `{}`, `[[]]`, `[{}]`, `[null]`, `[""]`, `["",""]`, `["a","b"]`, `["ab"]`,
		`["a,b"]`, `{"a":"b"}`, `{"a":{"b":1}}`, `{"a":{},"b":1}`, `{"ab":1}`, `{"a":1}`, `{"a":[1]}`, `{"":1}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`, `-0`, `0`, `[1,[2]]`, `[[1],2]`, `[1,2]`,
	}
	seen := map[string]string{}
	for _, v := range values {
		form := canonical(t, `{"f":`+v+`}`)
		if other, ok := seen[form]; ok {
			t.Errorf("%s and %s share a form", v, other)
		}
		seen[form] = v
	}
}

func TestObjectAllocatesNothing(t *testing.T) {
	d := New()
	fields := make([]Field, 0, 64)
	for _, in := range [][]byte{[]byte(acme), []byte(wide), []byte(`{"o":{"b":[1,2,{"x":"y"}],"a":"z"},"s":"a\nb","\u0061":1}`)} {
		var canon []byte
		run := func() {
			var refusal *Refusal
			if fields, refusal = d.Object(in, fields[:0]); refusal != nil {
				t.Fatal(refusal)
			}
			canon = canon[:0]
			for _, f := range fields {
				canon = d.AppendCanonical(canon, f)
			}
		}
		run()
		if n := testing.AllocsPerRun(200, run); n > 0 {
			t.Errorf("%v allocations for %.30s", n, in)
		}
	}
}

const acme = `{"partner_id":1000,"name":"Hydraulique Lyon 1000","city":"Lyon","country":"FR","credit_limit":500,"updated_at":"2026-01-01T00:00:00Z"}`

// wide is a message of 30 fields and about 1 kB.
var wide = func() string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range 10 {
		fmt.Fprintf(&b, `"number_%02d":%d,"amount_%02d":%d.%02d,"text_%02d":"a text of some thirty letters %d",`, i, i*100003, i, i*77, i, i, i)
	}
	return strings.TrimSuffix(b.String(), ",") + "}"
}()

func benchmark(b *testing.B, in string) {
	d := New()
	fields := make([]Field, 0, 64)
	value := []byte(in)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		var refusal *Refusal
		if fields, refusal = d.Object(value, fields[:0]); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkObjectACME(b *testing.B)   { benchmark(b, acme) }
func BenchmarkObjectWide(b *testing.B)   { benchmark(b, wide) }
func BenchmarkObjectNested(b *testing.B) { benchmark(b, `{"id":1,"o":`+wide+`}`) }

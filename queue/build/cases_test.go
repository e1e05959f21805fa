package build

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"highwater/sql/table"
)

// valueCase is one of the inputs of the sections A and B that broke others. Each is tried alone on a table that does not
// exist, and in the middle of a chunk of good messages, whose rows must not suffer.
type valueCase struct {
	name   string
	o      Options
	shape  []string // columns of the table it is tried on, besides id_; nil: a new one
	values []string
	row    string // what the last value's row says, in part
	letter string // reason and part of the last value's letter
}

var valueCases = []valueCase{
	{name: "NUL in a string", values: []string{`{"id_":1,"s":"a\u0000b"}`}, letter: "MalformedSource: the text holds NUL (\\u0000), which the database cannot store, in field s"},
	{name: "NUL deep", values: []string{`{"id_":1,"o":{"k":["\u0000"]}}`}, letter: "in field o.k[0]"},
	{name: "NUL in a key", values: []string{`{"id_":2,"o":{"a\u0000":1}}`}, letter: "in field o"},
	{name: "lone surrogate", values: []string{`{"id_":1,"s":"\ud83d"}`}, letter: "unpaired surrogate"},
	{name: "surrogates the wrong way round", values: []string{`{"id_":2,"s":"\udc59\ud835"}`}, letter: "unpaired surrogate"},
	{name: "surrogate pair", values: []string{`{"id_":3,"s":"\ud83d\ude00"}`}, row: "s=😀"},
	{name: "byte order mark", values: []string{"\xef\xbb\xbf{\"id_\":1}"}, row: "id_=1"},
	{name: "UTF-16", values: []string{"\xff\xfe{\x00}\x00"}, letter: "not UTF-8"},
	{name: "Schema Registry framing", values: []string{"\x00\x00\x00\x00\x07\x02\x04ab"}, letter: "looks like Schema Registry framing (first byte 00, schema id 7)"},
	{name: "beyond int64 after a whole number", values: []string{`{"n":1}`, `{"n":9223372036854775808}`, `{"n":327267367867168100000}`}, row: "n=327267367867168100000"},
	{name: "many decimals", values: []string{`{"d":0.1234567890123456789,"p":1.10}`}, row: "d=0.1234567890123456789 p=1.10"},
	{name: "exponent 2^32", values: []string{`{"f":1e4294967296}`}, letter: "out of range"},
	{name: "exponent -2^32", values: []string{`{"f":1e-4294967296}`}, letter: "out of range"},
	{name: "exponent beyond numeric", values: []string{`{"f":1e200000}`}, letter: "out of range"},
	{name: "a token that expands", values: []string{`{"f":1e131071}`}, letter: "out of range"},
	{name: "NaN", values: []string{`{"v":NaN}`}, letter: "NaN is no JSON number"},
	{name: "minus infinity", values: []string{`{"v":-Infinity}`}, letter: "Infinity is no JSON number"},
	{name: "200,000 levels", values: []string{`{"o":` + strings.Repeat("[", 200000) + strings.Repeat("]", 200000) + `}`}, letter: "nested deeper than 512 levels"},
	{name: "digits in quotes", values: []string{`{"zip":"007"}`}, row: "zip=007"},
	{name: "empty string", values: []string{`{"zip":""}`}, row: "zip="},
	{name: "exponent in quotes", values: []string{`{"zip":"1e5"}`}, row: "zip=1e5"},
	{name: "a boolean for a boolean's text", values: []string{`{"l":false}`, `{"l":"false"}`, `{"l":0}`}, row: "l=0"},
	{name: "a word for a boolean", shape: []string{"l:boolean"}, values: []string{`{"l":"yes"}`}, letter: `TypeConflict: the field "l" is the string "yes", and its column is boolean`},
	{name: "a string for a whole number", shape: []string{"c:bigint"}, values: []string{`{"c":"x"}`}, letter: `TypeConflict: the field "c" is the string "x", and its column is bigint`},
	{name: "a number", values: []string{`42`}, letter: "not an object"},
	{name: "a string", values: []string{`"x"`}, letter: "not an object"},
	{name: "an array", values: []string{`[{"a":1}]`}, letter: "not an object"},
	{name: "the literal null", values: []string{`null`}, letter: "not an object: the value is the literal null"},
	{name: "empty object", values: []string{`{}`}, row: ""},
	{name: "zero bytes", values: []string{``}, letter: "empty value"},
	{name: "only spaces", values: []string{`   `}, letter: "empty value"},
	{name: "null, missing, null inside", values: []string{`{"id_":1,"o":null}`, `{"id_":2}`, `{"id_":3,"o":{"x":null}}`}, row: `o={"x":null}`},
	{name: "null", values: []string{`{"id_":3,"o":{"x":null}}`, `{"id_":1,"o":null}`}, row: `o=\N`},
	{name: "an instant", o: Options{Types: map[string]string{"d": "timestamptz"}}, values: []string{`{"d":"2024-03-01T00:30:00+02:00"}`}, row: "d=2024-03-01T00:30:00+02:00"},
	{name: "a date, old and new", o: Options{Types: map[string]string{"d": "date", "e": "date"}}, values: []string{`{"d":"1000-01-01","e":"2024-03-01"}`}, row: "d=1000-01-01 e=2024-03-01"},
	{name: "a time beyond the range", o: Options{Types: map[string]string{"d": "timestamptz"}}, values: []string{`{"d":"300000-01-01T00:00:00Z"}`}, row: "d=300000-01-01"},
	{name: "several documents", values: []string{"{\"id_\":1}\n{\"id_\":2}\n{bad"}, letter: "trailing data"},
	{name: "schema and payload", values: []string{`{"schema":{"type":"struct","fields":[]},"payload":{"id":1}}`}, row: `schema={"type":"struct","fields":[]} payload={"id":1}`},
	{name: "arrays", values: []string{`{"a":[1,2],"b":[],"c":[[1],["x"]]}`}, row: `a=[1,2] b=[] c=[[1],["x"]]`},
	{name: "names that differ in case", values: []string{`{"Id":1,"iD":2,"ID":3}`}, row: "Id=1 iD=2 ID=3"},
	{
		name: "reserved words and quotes", values: []string{`{"user":1,"order":2,"select":3,"collation":"c","all":true,"\"q\"":4,"x;drop table y":5}`},
		row: `user=1 order=2 select=3 collation=c all=t "q"=4 x;drop table y=5`,
	},
	{name: "a key of zero length", values: []string{`{"":1,"id_":2}`}, letter: "a key is empty"},
	{name: "a key twice", values: []string{`{"a":1,"a":2}`}, letter: `the key "a" appears twice`},
	{name: "tombstone", values: []string{`<null>`}, letter: "MalformedSource: Kafka tombstone (key 'k"},
	{name: "too large", o: Options{MaxMessageBytes: 1 << 10}, values: []string{`{"s":"` + strings.Repeat("x", 1<<10) + `"}`}, letter: "TooLarge: the value has 1032 bytes, and max_message_bytes is 1024"},
	{name: "text that COPY would misread", values: []string{`{"s":"a\tb\nc\rd\\e\\N\\.","t":"\\."}`}, row: `s=a\tb\nc\rd\\e\\N\\. t=\\.`},
	{name: "JSON that COPY would misread", values: []string{"{\"o\":{\n\t\"k\": \"a\\nb\"\r}}"}, row: `o={\n\t"k": "a\\nb"\r}`},
	{name: "a string in a jsonb column", shape: []string{"j:jsonb"}, values: []string{`{"j":"a\"b"}`}, row: `j="a\\"b"`},
	{name: "any value in a jsonb column", shape: []string{"j:jsonb"}, values: []string{`{"j":1.50}`}, row: `j=1.50`},
	{name: "a scalar in a text column", shape: []string{"j:text"}, values: []string{`{"j":true}`}, row: `j=true`},
	{name: "an object in a text column", shape: []string{"j:text"}, values: []string{`{"j":{"a": "x\ty"}}`}, row: `j={"a": "x\\ty"}`},
	{name: "a type that people chose", shape: []string{"u:uuid"}, values: []string{`{"u":"5b0ab9c2-2bd0-4a0c-9e5c-93e7a0b2a1aa"}`}, row: `u=5b0ab9c2-2bd0-4a0c-9e5c-93e7a0b2a1aa`},
	{name: "a bad value for such a type is the server's to refuse", shape: []string{"u:uuid"}, values: []string{`{"u":"x"}`}, row: `u=x`},
	{name: "minus zero", values: []string{`{"a":-0,"b":-0.0}`}, row: `a=-0 b=-0.0`},
	{name: "bytes in base64", o: Options{Types: map[string]string{"b": "bytea"}}, values: []string{`{"b":"AP8="}`}, row: `b=\\x00ff`},
	{name: "bytes in base64 without padding", o: Options{Types: map[string]string{"b": "bytea"}}, values: []string{`{"b":"AP8"}`}, row: `b=\\x00ff`},
	{name: "bytes that are no base64", o: Options{Types: map[string]string{"b": "bytea"}}, values: []string{`{"b":"~"}`}, letter: `TypeConflict: the field "b" is the string "~", and its column is bytea written as base64`},
	{
		name: "a float that a declared type would round", o: Options{Types: map[string]string{"f": "double precision"}}, values: []string{`{"f":0.12345678901234567890123}`},
		letter: "its column is double precision, which would not keep it exactly",
	},
	{name: "a long string in a letter", shape: []string{"c:bigint"}, values: []string{`{"c":"` + strings.Repeat("x\\n", 5000) + `"}`}, letter: `x\nx\nx`},
}

func TestValuesAloneAndAmongGoodMessages(t *testing.T) {
	for _, c := range valueCases {
		t.Run(c.name, func(t *testing.T) {
			var shape *table.Shape
			if c.shape != nil {
				shape = shapeOf(append([]string{"id_:bigint"}, c.shape...)...)
			}
			t.Run("alone", func(t *testing.T) { c.try(t, shape, nil) })
			t.Run("among good messages of a new table", func(t *testing.T) { c.try(t, shape, []string{`{"id_":10}`, `{"id_":11}`}) })
			t.Run("among good messages of a table", func(t *testing.T) {
				c.try(t, shapeOf(append([]string{"id_:bigint"}, c.shape...)...), []string{`{"id_":10}`, `{"id_":11}`})
			})
		})
	}
}

func (c valueCase) try(t *testing.T, shape *table.Shape, around []string) {
	b := New(c.o)
	values := append(append(append([]string{}, around...), c.values...), around...)
	at := len(around) + len(c.values) - 1
	b.Add(batchOf(0, 0, values...))
	chunks, _ := all(t, b, shape)
	got := shown(chunks...)
	for i := range values {
		mark := fmt.Sprintf("0:%d ", i)
		if i == at {
			want := c.row
			if c.letter != "" {
				want = c.letter
			}
			line := find(got+"\n", fmt.Sprintf("0:%d", i))
			if !strings.Contains(line, want) || (c.letter != "") != strings.ContainsAny(line, "MT") && c.letter != "" {
				t.Errorf("message %d became %.300q, want %q", i, line, want)
			}
		} else if i < len(around) || i > at {
			if line := find(got, mark); !strings.Contains(line, "id_=1") {
				t.Errorf("good message %d became %.300q", i, line)
			}
		}
	}
	for _, ch := range chunks {
		for _, l := range ch.Letters {
			if len(l.Message) > 1000 || strings.ContainsAny(l.Message, "\x00\n") {
				t.Errorf("letter message %.200q is not bounded or not printable", l.Message)
			}
		}
	}
}

// find gives the line that begins with mark.
func find(text, mark string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, mark) {
			return line
		}
	}
	return "nothing"
}

func TestFirstChunkInfersTypesFromAllItsMessages(t *testing.T) {
	b := New(Options{})
	b.Add(batchOf(0, 0,
		`{"i":1,"d":1.5,"big":1,"exact":1.2345,"long":1.23456,"s":"x","b":true,"o":{},"n":null,"mix":1,"j":"s","late":null}`,
		`{"i":-5,"d":2,"big":9223372036854775808,"exact":99999999999999.9,"s":"y","b":false,"o":[1],"n":null,"mix":"one","j":[1],"late":7,"new":"z"}`))
	chunks, _ := all(t, b, nil)
	compare(t, shown(chunks...), lines(
		"add i bigint", "add d numeric", "add big numeric", "add exact numeric(18,4)", "add long numeric", "add s text", "add b boolean", "add o jsonb", "add n text",
		"add mix text", "add j jsonb", "add late bigint", "add new text",
		`0:0 i=1 d=1.5 big=1 exact=1.2345 long=1.23456 s=x b=t o={} n=\N mix=1 j="s" late=\N new=\N`,
		`0:1 i=-5 d=2 big=9223372036854775808 exact=99999999999999.9 long=\N s=y b=f o=[1] n=\N mix=one j=[1] late=7 new=z`))
}

func TestNumbersWidenTheirColumn(t *testing.T) {
	b := New(Options{})
	b.Add(batchOf(0, 0, `{"n":1,"m":1.5}`, `{"n":2}`))
	first, shape := all(t, b, nil)
	b.Add(batchOf(0, 2, `{"n":3}`, `{"n":1.5}`, `{"n":4,"m":0.00001}`, `{"n":"x"}`))
	then, shape := all(t, b, shape)
	compare(t, shown(append(first, then...)...), lines(
		"add n bigint", "add m numeric(18,4)", "0:0 n=1 m=1.5", `0:1 n=2 m=\N`,
		"0:2 n=3",
		"widen n numeric", "widen m numeric", `0:3 n=1.5 m=\N`, "0:4 n=4 m=0.00001",
		`0:5 TypeConflict: the field "n" is the string "x", and its column is numeric`))
	if c, _ := shape.Column("n"); c.SQLType != "numeric" {
		t.Errorf("n is %s", c.SQLType)
	}
}

func TestAFrozenColumnMakesLetters(t *testing.T) {
	b := New(Options{})
	shape := shapeOf("n:bigint")
	c, _ := shape.Column("n")
	c.Frozen = `cannot alter type of a column used by a view or rule`
	b.Add(batchOf(0, 0, `{"n":1}`, `{"n":1.5}`, `{"n":2}`))
	chunks, _ := all(t, b, shape)
	compare(t, shown(chunks...), lines("0:0 n=1", "0:2 n=2",
		`0:1 TypeConflict: the field "n" is the number 1.5, and its column is bigint; it cannot be widened: cannot alter type of a column used by a view or rule`))
}

func TestTypeChange(t *testing.T) {
	values := []string{`{"c":1}`, `{"c":"x"}`, `{"c":[2]}`, `{"c":3}`}
	t.Run("widen makes the column text", func(t *testing.T) {
		b := New(Options{TypeChange: TypeChangeWiden})
		b.Add(batchOf(0, 0, values...))
		chunks, _ := all(t, b, shapeOf("c:bigint"))
		compare(t, shown(chunks...), lines("0:0 c=1", "widen c text", "0:1 c=x", "0:2 c=[2]", "0:3 c=3"))
	})
	t.Run("fail ends the run", func(t *testing.T) {
		b := New(Options{TypeChange: TypeChangeFail, Topic: "orders"})
		b.Add(batchOf(2, 7, values...))
		_, err := b.Cut(shapeOf("c:bigint"))
		var se *SchemaError
		if !errors.As(err, &se) || se.Code != "schema_changed" || se.Error() != `orders:2:8: type_change is fail: the field "c" is the string "x", and its column is bigint` {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("fail lets numbers grow", func(t *testing.T) {
		b := New(Options{TypeChange: TypeChangeFail})
		b.Add(batchOf(0, 0, `{"c":1.5}`))
		chunks, _ := all(t, b, shapeOf("c:bigint"))
		compare(t, shown(chunks...), lines("widen c numeric", "0:0 c=1.5"))
	})
}

func TestStrictSchema(t *testing.T) {
	strict := func(shape *table.Shape, values ...string) error {
		b := New(Options{Strict: true})
		b.Add(batchOf(0, 0, values...))
		for b.Pending() {
			c, err := b.Cut(shape)
			if err != nil {
				return err
			}
			if len(c.Rows) > 0 {
				shape = shape.With(c.Alters)
			}
		}
		return nil
	}
	for _, c := range []struct {
		name   string
		shape  *table.Shape
		values []string
		want   string
	}{
		{"the first message fixes the columns of a new table", nil, []string{`{"a":1,"b":"x"}`, `{"a":2}`, `{"b":"y"}`}, ""},
		{"a new field in the first chunk", nil, []string{`{"a":1}`, `{"a":1,"b":2}`}, `the field "b" has no column`},
		{"another type in the first chunk", nil, []string{`{"a":1}`, `{"a":"x"}`}, `the field "a" is the string "x", and its column is bigint`},
		{"a number that grows", nil, []string{`{"a":1}`, `{"a":1.5}`}, ""},
		{"a bad message before the first good one fixes nothing", nil, []string{`[]`, `{"a":1}`}, ""},
		{"a new field for a table", shapeOf("a:bigint"), []string{`{"a":1}`, `{"a":1,"b":2}`}, `the field "b" has no column`},
		{"a missing field", shapeOf("a:bigint", "b:text"), []string{`{"a":1}`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := strict(c.shape, c.values...)
			var se *SchemaError
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &se) || se.Code != "strict_schema" || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

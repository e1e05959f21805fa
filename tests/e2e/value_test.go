package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// value is messages and what the database gives for them, one column of a query a line.
type value struct {
	name   string
	extra  string // of the spec
	values []string
	query  string // over connector.t
	want   string
	says   []string // words of the run's log
}

var values = []value{
	{name: "a byte order mark", values: []string{"\xef\xbb\xbf{\"n\":1}"}, query: "n", want: "1"},
	{name: "white space around", values: []string{" \r\n\t{ \"n\" : 1 }\n "}, query: "n", want: "1"},
	{name: "a surrogate pair, and characters of every length", values: []string{`{"s":"\ud83d\ude00 aé€😀\u00e9"}`}, query: "s", want: "😀 aé€😀é"},
	{name: "escapes and what COPY would misread", values: []string{`{"s":"\"\\\/\b\f\n\r\t \\N \\. \u0001"}`}, query: "s = E'\"\\\\/\\b\\f\\n\\r\\t \\\\N \\\\. \\x01'", want: "true"},
	{name: "a line that looks like COPY's end", values: []string{`{"s":"\\."}`, `{"s":"\n\\.\n"}`}, query: "s", want: "\\.,\n\\.\n"},
	{name: "whole numbers beyond int64", values: []string{`{"n":1}`, `{"n":9223372036854775808}`, `{"n":327267367867168100000}`}, query: "n", want: "1,9223372036854775808,327267367867168100000"},
	{name: "the ends of int64", values: []string{`{"n":9223372036854775807}`, `{"n":-9223372036854775808}`}, query: "n || pg_typeof(n)::text", want: "9223372036854775807bigint,-9223372036854775808bigint"},
	{name: "many decimals", values: []string{`{"n":0.1234567890123456789}`}, query: "n", want: "0.1234567890123456789"},
	{name: "decimals that money holds", values: []string{`{"n":1.10}`, `{"n":99999999999999.9999}`}, query: "n || ' ' || format_type(atttypid, atttypmod)", want: "1.1000 numeric(18,4),99999999999999.9999 numeric(18,4)"},
	{name: "one decimal too many", values: []string{`{"n":1.10}`, `{"n":0.00001}`}, query: "n || ' ' || format_type(atttypid, atttypmod)", want: "1.10 numeric,0.00001 numeric"},
	{name: "one digit too many", values: []string{`{"n":1.5}`, `{"n":123456789012345.5}`}, query: "n", want: "1.5,123456789012345.5"},
	{name: "forty digits", values: []string{`{"n":1234567890123456789012345678901234567890}`}, query: "n", want: "1234567890123456789012345678901234567890"},
	{name: "an exponent beyond any float", values: []string{`{"n":1e400}`}, query: "n = '1e400'::numeric", want: "true"},
	{name: "a small exponent", values: []string{`{"n":1.5e-7}`}, query: "n", want: "0.00000015"},
	{name: "minus zero", values: []string{`{"n":-0}`, `{"n":-0.0}`}, query: "n", want: "0,0.0"},
	{name: "a number of 1,000 digits", values: []string{`{"n":` + strings.Repeat("9", 1000) + `}`}, query: "length(n::text)", want: "1000"},
	{name: "exact numbers within jsonb", values: []string{`{"o":{"n":0.1234567890123456789,"m":1.10,"big":327267367867168100000}}`}, query: "o", want: `{"m": 1.10, "n": 0.1234567890123456789, "big": 327267367867168100000}`},
	{name: "digits in quotes stay text", values: []string{`{"s":"007"}`, `{"s":""}`, `{"s":"1e5"}`, `{"s":"NULL"}`}, query: "'<' || s || '>'", want: "<007>,<>,<1e5>,<NULL>"},
	{name: "a boolean, its word and a zero in one chunk", values: []string{`{"s":false}`, `{"s":"false"}`, `{"s":0}`}, query: "s || ' ' || pg_typeof(s)", want: "false text,false text,0 text"},
	{name: "whole and decimal in one chunk", values: []string{`{"n":1}`, `{"n":2.5}`}, query: "n || ' ' || pg_typeof(n)", want: "1 numeric,2.5 numeric"},
	{name: "anything with an object", values: []string{`{"o":1}`, `{"o":{"a":1}}`, `{"o":"x"}`, `{"o":[true]}`}, query: "o", want: `1,{"a": 1},"x",[true]`},
	{name: "null, nothing, null inside", values: []string{`{"n":1,"o":null}`, `{"n":2}`, `{"n":3,"o":{"x":null}}`}, query: "coalesce(o::text, 'NULL') || ' ' || pg_typeof(o)", want: `NULL jsonb,NULL jsonb,{"x": null} jsonb`},
	{name: "null in the whole chunk", values: []string{`{"n":1,"s":null}`}, query: "coalesce(s, 'NULL') || ' ' || pg_typeof(s)", want: "NULL text"},
	{name: "an empty object", values: []string{`{"n":1}`, `{}`}, query: "coalesce(n::text, 'NULL')", want: "1,NULL"},
	{name: "schema and payload, taken as they are", values: []string{`{"schema":{"type":"struct","fields":[]},"payload":{"id":1}}`}, query: "concat_ws(' ', schema, payload)", want: `{"type": "struct", "fields": []} {"id": 1}`},
	{name: "arrays", values: []string{`{"a":[1,2],"b":[],"c":[[1],["x"]]}`}, query: "concat_ws(' ', a, b, c)", want: `[1, 2] [] [[1], ["x"]]`},
	{name: "512 levels", values: []string{`{"o":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + `}`}, query: "length(o::text)", want: "1022"},
	{name: "widened by a later chunk", extra: `,"chunk_rows":1`, values: []string{`{"n":1}`, `{"n":2.5}`, `{"n":0.123456789}`}, query: "n || ' ' || format_type(atttypid, atttypmod)", want: "1 numeric,2.5 numeric,0.123456789 numeric", says: []string{`widened column "n" from bigint to numeric in `}},
	{name: "a column of a later chunk", extra: `,"chunk_rows":1`, values: []string{`{"n":1}`, `{"n":2,"added":true,"too":"x"}`, `{"n":3}`}, query: "concat_ws('|', n, coalesce(added::text, 'NULL'), coalesce(too, 'NULL'))", want: "1|NULL|NULL,2|true|x,3|NULL|NULL", says: []string{`new columns: "added" boolean, "too" text`}},
	{name: "times and dates of any zone", extra: `,"types":{"d":"date","t":"timestamptz","p":"timestamp"}`, values: []string{`{"d":"2024-03-01","t":"2024-03-01T00:30:00+02:00","p":"1000-01-01T24:00:00"}`}, query: "concat_ws('|', d, t AT TIME ZONE 'UTC', p)", want: "2024-03-01|2024-02-29 22:30:00|1000-01-02 00:00:00"},
	{name: "bytes in base64", extra: `,"types":{"b":"bytea"}`, values: []string{`{"b":"AP8="}`, `{"b":""}`}, query: "b", want: `\x00ff,\x`},
	{name: "declared types", extra: `,"types":{"u":"uuid","f":"double precision","m":"numeric(8,2)","s":"text"}`, values: []string{`{"u":"5B0AB9C2-2bd0-4a0c-9e5c-93e7a0b2a1aa","f":0.1,"m":12.34,"s":5}`}, query: "concat_ws('|', u, f, m, s, pg_typeof(s))", want: "5b0ab9c2-2bd0-4a0c-9e5c-93e7a0b2a1aa|0.1|12.34|5|text"},
}

// What a value becomes, from the topic to the table: exactly what it was, whatever the session and the type.
func TestValuesAreExact(t *testing.T) {
	f := onFake(t)
	f.exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''America/New_York''', current_database()); END $$")
	f.pool.Reset()
	f.sidecar(nil)
	for i, c := range values {
		t.Run(c.name, func(t *testing.T) {
			f := *f
			f.TB = t
			topic := f.topic(fmt.Sprintf("v%d", i), 1, nil)
			f.produce(topic, 0, c.values...)
			name := fmt.Sprintf("v%d", i)
			f.declare(name, topic, c.extra)
			n := int64(len(c.values))
			e := f.completed(name, n, n)
			// The type as it is declared belongs to the column that the query names first.
			column := strings.SplitN(c.query, " ", 2)[0]
			f.want(c.want, fmt.Sprintf(`SELECT string_agg((%s)::text, ',' ORDER BY t.id) FROM connector.t_%s AS t
				LEFT JOIN pg_attribute ON attrelid = 'connector.t_%s'::regclass AND attname = '%s'`, c.query, name, name, strings.ReplaceAll(column, "'", "''")))
			for _, w := range c.says {
				f.want("1", "SELECT count(*) FROM connector.log WHERE run_id = $1 AND level = 'INFO' AND position($2 IN message) > 0", e.RunID, w)
			}
		})
	}
}

// A value that does not fit a column that is there is set aside, or does what type_change says; it never becomes NULL.
func TestTypeConflicts(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	topic := f.topic("types", 1, nil)
	f.produce(topic, 0, `{"c":1,"b":true,"m":1.5}`, `{"c":2,"b":false,"m":2.5}`, `{"c":"x"}`, `{"b":"yes"}`, `{"m":"2.5"}`, `{"c":{"a":1}}`, `{"c":3,"b":true,"m":3.25}`)
	f.declare("apart", topic, `,"chunk_rows":2`)
	e := f.completed("apart", 7, 3)
	if e.DeadLetters != 4 {
		t.Errorf("%+v, want 4 letters", e)
	}
	f.want("1 t 1.5000,2 f 2.5000,3 t 3.2500", "SELECT string_agg(concat_ws(' ', c, b, m), ',' ORDER BY id) FROM connector.t_apart")
	for offset, words := range map[int][]string{
		2: {`"c"`, `the string "x"`, "bigint"}, 3: {`"b"`, `the string "yes"`, "boolean"}, 4: {`"m"`, `"2.5"`, "numeric(18,4)"}, 5: {`"c"`, `the object`, "bigint"},
	} {
		f.says(f.text(`SELECT reason || ' ' || message FROM connector.dlq WHERE connector = 'apart' AND "offset" = $1`, offset), append(words, "TypeConflict")...)
	}
	f.declare("wide", topic, `,"chunk_rows":2,"type_change":"widen"`)
	f.completed("wide", 7, 7)
	f.want(`1,2,x,{"a":1},3`, "SELECT string_agg(c, ',' ORDER BY id) FROM connector.t_wide")
	f.want("text text text", `SELECT string_agg(format_type(atttypid, atttypmod), ' ') FROM pg_attribute WHERE attrelid = 'connector.t_wide'::regclass AND attname IN ('c', 'b', 'm')`)
	f.declare("stop", topic, `,"chunk_rows":2,"type_change":"fail"`)
	f.ends(f.run("stop"), "Failed", "schema_changed", topic+":0:2", `"c"`, "bigint")
	f.want("2", "SELECT count(*) FROM connector.t_stop")
	f.declare("strict", topic, `,"chunk_rows":2,"schema":"strict"`)
	f.ends(f.run("strict"), "Failed", "strict_schema", topic+":0:2", `"c"`)

	grows := f.topic("grows", 1, nil)
	f.produce(grows, 0, `{"a":1}`, `{"a":2,"b":1}`, `{}`)
	f.declare("closed", grows, `,"chunk_rows":1,"schema":"strict"`)
	f.ends(f.run("closed"), "Failed", "strict_schema", grows+":0:1", `"b"`)
	f.want("1", "SELECT count(*) FROM connector.t_closed")
}

// A name is kept byte for byte, whatever it holds; two that PostgreSQL would cut to one stay two.
func TestOddNames(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	long := strings.Repeat("a", 70)
	wide := strings.Repeat("é", 35)
	topic := f.topic("names", 1, nil)
	const keys = `"user":1,"order":2,"select":3,"all":true,"Id":4,"ID":5,"iD":6,"\"q\"":7,"x;drop table y":8,"a b":9,"Été":10,"MONTANT_€":11,"new\nline":12,"a.b":13,"%I":14,"$1":15,"\\":16,"'":17,"\u200b":18`
	f.produce(topic, 0, fmt.Sprintf(`{%s,"%s1":19,"%s2":20,"%s":21}`, keys, long, long, wide))
	f.declare("names", topic, "")
	e := f.completed("names", 1, 1)
	f.want("true", "SELECT to_jsonb(t) @> $1::jsonb FROM connector.t_names AS t", "{"+keys+"}")
	for field, want := range map[string]string{long + "1": "19", long + "2": "20", wide: "21"} {
		column := f.text("SELECT column_name FROM connector._column WHERE field = $1", field)
		if len(column) > 63 || !strings.HasPrefix(field, strings.TrimRight(column, "_0123456789abcdef")) && field != wide {
			t.Errorf("the column of %s is %s", field, column)
		}
		f.want(want, fmt.Sprintf(`SELECT %q FROM connector.t_names`, column))
		f.want("1", "SELECT count(*) FROM connector.log WHERE run_id = $1 AND level = 'WARN' AND position($2 IN message) > 0 AND position($3 IN message) > 0", e.RunID, field, column)
	}
	f.produce(topic, 0, fmt.Sprintf(`{"%s1":119,"%s2":120}`, long, long))
	f.completed("names", 1, 1)
	f.want("29", "SELECT count(*) FROM pg_attribute WHERE attrelid = 'connector.t_names'::regclass AND attnum > 0")
}

// A field that the table keeps for itself ends the run before a row of the chunk lands; rename mends it.
func TestReservedNames(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	for i, field := range []string{"id", "_row_hash", "_ingested_at", "_source", "_run_id", "_mapping_version", "tenant_id", "ctid", "xmin", "tableoid"} {
		t.Run(field, func(t *testing.T) {
			f := *f
			f.TB = t
			topic := f.topic(fmt.Sprintf("r%d", i), 1, nil)
			f.produce(topic, 0, `{"good":1}`, fmt.Sprintf(`{"good":2,%q:7}`, field))
			name := fmt.Sprintf("r%d", i)
			f.declare(name, topic, "")
			e := f.run(name)
			f.ends(e, "Failed", "reserved_column", fmt.Sprintf("%q", field), "id, _row_hash, _ingested_at, _source, _run_id, _mapping_version, tenant_id", "rename")
			f.says(e.Hint, `"rename"`, field)
			f.want("<null>", "SELECT to_regclass('connector.t_"+name+"')")
			f.exec("UPDATE connector.manifest SET spec = spec || jsonb_build_object('rename', jsonb_build_object($2::text, 'other')) WHERE name = $1", name, field)
			f.completed(name, 2, 2)
			f.want("7", "SELECT other FROM connector.t_"+name+" WHERE good = 2")
		})
	}
}

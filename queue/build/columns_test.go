package build

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"highwater/queue/land"
	"highwater/reader/kafka"
	"highwater/sql/table"
)

func TestReservedNamesEndTheRun(t *testing.T) {
	for _, name := range []string{"id", "_row_hash", "_ingested_at", "_source", "_run_id", "_mapping_version", "tenant_id", "xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"} {
		for _, shape := range []*table.Shape{nil, shapeOf("a:bigint")} {
			b := New(Options{Topic: "acme.partners"})
			b.Add(batchOf(1, 40, `{"a":1}`, `{"a":2,"`+name+`":null}`))
			var err error
			for err == nil && b.Pending() {
				var c *land.Chunk
				if c, err = b.Cut(shape); err == nil {
					t.Errorf("%s: a chunk of %d rows was cut", name, len(c.Rows))
				}
			}
			var re *ReservedError
			if !errors.As(err, &re) {
				t.Fatalf("%s: got %v", name, err)
			}
			want := []string{`acme.partners:1:41: field "` + name + `" `, "rename"}
			for _, c := range table.System {
				want = append(want, c.Name)
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			if !strings.Contains(re.Hint(), `"rename": {"`+name+`"`) {
				t.Errorf("hint %q", re.Hint())
			}
		}
	}
}

func TestReservedNamesAreFreeWhereNoColumnBearsThem(t *testing.T) {
	value := `{"id":1,"xmin":2}`
	for _, o := range []Options{
		{Rename: map[string]string{"id": "partner_id", "xmin": "x"}},
		{Exclude: []string{"id", "xmin"}},
		{Only: []string{"other"}},
		{Layout: LayoutDocument},
	} {
		b := New(o)
		b.Add(batchOf(0, 0, value))
		if c := cut(t, b, nil); len(c.Rows) != 1 {
			t.Errorf("%+v: %s", o, shown(c))
		}
	}
	b := New(Options{Rename: map[string]string{"a": "id"}})
	b.Add(batchOf(0, 0, `{"a":1}`))
	var re *ReservedError
	if _, err := b.Cut(nil); !errors.As(err, &re) || re.Field != "a" || re.Column != "id" {
		t.Errorf("got %v", err)
	}
}

func TestATransportColumnsNameIsReservedOnceIncluded(t *testing.T) {
	b := New(Options{Include: []string{"key"}})
	b.Add(batchOf(0, 0, `{"_key_bytes":1}`))
	var re *ReservedError
	if _, err := b.Cut(nil); !errors.As(err, &re) || !re.Transport || !strings.Contains(err.Error(), "rename") {
		t.Errorf("got %v", err)
	}
	b = New(Options{})
	b.Add(batchOf(0, 0, `{"_key_bytes":1}`))
	compare(t, shown(cut(t, b, nil)), lines("add _key_bytes bigint", "0:0 _key_bytes=1"))
}

func TestRenameExcludeOnly(t *testing.T) {
	value := `{"id":1,"b":{"x":1},"c":null}`
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"rename", Options{Rename: map[string]string{"id": "partner_id"}}, lines("add partner_id bigint", "add b jsonb", "add c text", `0:0 partner_id=1 b={"x":1} c=\N`)},
		{"exclude", Options{Exclude: []string{"id", "b"}}, lines("add c text", `0:0 c=\N`)},
		{"only, then rename", Options{Only: []string{"id"}, Rename: map[string]string{"id": "n"}}, lines("add n bigint", "0:0 n=1")},
		{"only nothing", Options{Only: []string{}}, "0:0"},
		{
			"a declared type by field",
			Options{Rename: map[string]string{"id": "n"}, Types: map[string]string{"id": "numeric(10,2)", "c": "date"}, Exclude: []string{"b"}},
			lines("add n numeric(10,2)", "add c date", `0:0 n=1 c=\N`),
		},
		{"a declared type by column", Options{Rename: map[string]string{"id": "n"}, Types: map[string]string{"n": "text"}, Only: []string{"id"}}, lines("add n text", "0:0 n=1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New(c.o)
			b.Add(batchOf(0, 0, value))
			compare(t, shown(cut(t, b, nil)), c.want)
		})
	}
}

func TestTwoFieldsForOneColumnMakeALetterThatNamesBoth(t *testing.T) {
	b := New(Options{Rename: map[string]string{"id": "partner_id"}})
	b.Add(batchOf(0, 0, `{"id":1,"partner_id":2}`, `{"id":1}`, `{"partner_id":3}`))
	chunks, _ := all(t, b, nil)
	compare(t, shown(chunks...), lines(
		`0:0 MalformedSource: the fields "id" and "partner_id" of one message both go to the column "partner_id"`,
		"add partner_id bigint", "0:1 partner_id=1", "0:2 partner_id=3"))
}

func TestLongNamesAreCutApart(t *testing.T) {
	one, two := strings.Repeat("a", 70)+"1", strings.Repeat("a", 70)+"2"
	nameOne, _ := table.ColumnName(one)
	nameTwo, _ := table.ColumnName(two)
	b := New(Options{})
	b.Add(batchOf(0, 0, `{"`+one+`":1,"`+two+`":2}`, `{"`+two+`":3,"`+nameTwo+`":4}`))
	c := cut(t, b, nil)
	compare(t, shown(c), lines("add "+nameOne+" bigint", "add "+nameTwo+" bigint", "0:0 "+nameOne+"=1 "+nameTwo+"=2",
		fmt.Sprintf(`0:1 MalformedSource: the fields "%.40s…" and "%.40s…" of one message both go to the column "%.40s…"`, two, nameTwo, nameTwo)))
	if c.Alters[0].Field != one {
		t.Errorf("the column history gets field %q", c.Alters[0].Field)
	}
	if len(c.Findings) != 2 || !c.Findings[0].Warn || !strings.Contains(c.Findings[0].Message, one) || !strings.Contains(c.Findings[0].Message, nameOne) {
		t.Errorf("findings %v", c.Findings)
	}
	b.Add(batchOf(0, 2, `{"`+one+`":1}`))
	if c := cut(t, b, shapeOf(nameOne+":bigint", nameTwo+":bigint")); len(c.Findings) != 0 {
		t.Errorf("said twice: %v", c.Findings)
	}
}

func TestGeneratedColumnsAreSkippedAndNotedOnce(t *testing.T) {
	shape := shapeOf("a:bigint", "b:bigint", "c:bigint")
	generated, _ := shape.Column("b")
	generated.Generated = true
	identity, _ := shape.Column("c")
	identity.Identity = true
	b := New(Options{})
	b.Add(batchOf(0, 0, `{"a":1,"b":9,"c":"x"}`, `{"b":9}`))
	c := cut(t, b, shape)
	compare(t, shown(c), lines("0:0 a=1", `0:1 a=\N`))
	if len(c.Findings) != 2 || !c.Findings[0].Warn || !strings.Contains(c.Findings[0].Message, `column "b" is generated`) {
		t.Errorf("findings %v", c.Findings)
	}
}

func TestRowsThatLackAColumnWithADefaultLeaveItOut(t *testing.T) {
	shape := shapeOf("a:bigint", "state:text", "n:bigint")
	state, _ := shape.Column("state")
	state.HasDefault = true
	b := New(Options{})
	b.Add(batchOf(0, 0, `{"a":1}`, `{"a":2,"state":"x"}`, `{"a":3}`, `{"a":4,"state":null}`, `{"n":5}`))
	c := cut(t, b, shape)
	compare(t, shown(c), lines(`0:0 a=1 n=\N`, "0:1 a=2 state=x", `0:2 a=3 n=\N`, `0:3 a=4 state=\N`, `0:4 a=\N n=5`))
	if len(c.Columns) != 2 {
		t.Errorf("groups %v", c.Columns)
	}
}

func TestColumnsAreTheUnionOfWhatTheChunkHas(t *testing.T) {
	shape := shapeOf("a:bigint", "b:bigint", "c:bigint", "unused:text")
	b := New(Options{})
	b.Add(batchOf(0, 0, `{"a":1}`, `{"b":2,"a":3}`, `{"a":4}`, `{}`, `{"c":5}`, `{"b":6}`))
	compare(t, shown(cut(t, b, shape)), lines(
		`0:0 a=1 b=\N c=\N`, `0:1 a=3 b=2 c=\N`, `0:2 a=4 b=\N c=\N`, `0:3 a=\N b=\N c=\N`, `0:4 a=\N b=\N c=5`, `0:5 a=\N b=6 c=\N`))
	b.Add(batchOf(0, 6, `{"c":5}`))
	compare(t, shown(cut(t, b, shape)), "0:6 c=5")
}

func TestAMessageForWhichThereIsNoRoomIsALetter(t *testing.T) {
	wide := func(from, to int) string {
		var s []string
		for i := from; i < to; i++ {
			s = append(s, fmt.Sprintf(`"k%d":%d`, i, i))
		}
		return "{" + strings.Join(s, ",") + "}"
	}
	b := New(Options{})
	b.Add(batchOf(0, 0, wide(0, 1000), wide(0, 1494), wide(900, 1493), wide(0, 2000), `{"k1":1,"one_more":2}`, `{"k1":3}`, `[]`))
	chunks, shape := all(t, b, nil)
	var letters, rows []int64
	for _, c := range chunks {
		for _, l := range c.Letters {
			letters = append(letters, l.Offset)
			if l.Offset != 6 && !strings.Contains(l.Message, "layout") {
				t.Errorf("letter %q does not hint at the layout", l.Message)
			}
		}
		for _, r := range c.Rows {
			rows = append(rows, r.Offset)
		}
	}
	if fmt.Sprint(rows, letters) != "[0 2 5] [1 3 4 6]" || len(shape.Columns) != table.MaxColumns {
		t.Fatalf("rows %v, letters %v, %d columns", rows, letters, len(shape.Columns))
	}
	b.Add(batchOf(0, 7, `{"k1":1}`, `{"yet_more":2}`, `{"k1":3}`))
	c := cut(t, b, shape)
	if len(c.Rows) != 2 || len(c.Letters) != 1 || !strings.Contains(c.Letters[0].Message, `there is no column for "yet_more"`) {
		t.Fatalf("a full table: %s", shown(c))
	}
}

func TestSparseMessagesOfAWideTableMakeSmallerChunks(t *testing.T) {
	var columns, values []string
	for i := range 1400 {
		columns = append(columns, fmt.Sprintf("k%d:bigint", i))
	}
	for i := range 9000 {
		values = append(values, fmt.Sprintf(`{"k%d":1}`, i%1400))
	}
	b := New(Options{ChunkRows: 10000, ChunkBytes: 1 << 20})
	b.Add(batchOf(0, 0, values...))
	chunks, _ := all(t, b, shapeOf(columns...))
	for _, c := range chunks {
		text := 0
		for _, r := range c.Rows {
			text += len(r.Text)
		}
		if text > 1<<20+1<<14 {
			t.Errorf("a chunk of %d rows has %d bytes of text", len(c.Rows), text)
		}
	}
}

func TestTransportColumns(t *testing.T) {
	o := Options{Topic: "orders", Include: []string{"topic", "partition", "offset", "timestamp", "key", "headers", "tombstone"}}
	b := New(o)
	batch := batchOf(4, 9, `{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":4}`, `{"a":5}`)
	batch.Records[0].Headers = []kafka.Header{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte("2\t\"")}, {Key: "b", Value: []byte{0xff, 0}}, {Key: "n"}, {Key: "\xff", Value: []byte{}}}
	batch.Records[1].Timestamp, batch.Records[1].Key = -1, nil
	batch.Records[2].Timestamp, batch.Records[2].Key = 253402300800000, []byte("a\tb")
	batch.Records[3].Timestamp = 1 << 60
	batch.Records[4].Timestamp, batch.Records[4].Key = -3600000, []byte{}
	b.Add(batch)
	chunks, shape := all(t, b, nil)
	compare(t, shown(chunks...), lines(
		"add a bigint", "add _topic text", "add _partition integer", "add _offset bigint", "add _timestamp timestamp with time zone", "add _key text", "add _headers jsonb", "add _tombstone boolean",
		`4:9 _topic=orders _partition=4 _offset=9 _timestamp=2026-01-01 00:00:00.123+00 _key=k9 _headers=[["h","1"],["h","2\\t\\""],["b",{"base64":"/wA="}],["n",null],[{"base64":"/w=="},""]] _tombstone=false a=1`,
		`4:10 _topic=orders _partition=4 _offset=10 _timestamp=\N _key=\N _headers=[] _tombstone=false a=2`,
		`4:11 _topic=orders _partition=4 _offset=11 _timestamp=10000-01-01 00:00:00.000+00 _key=a\tb _headers=[] _tombstone=false a=3`,
		`4:13 _topic=orders _partition=4 _offset=13 _timestamp=1969-12-31 23:00:00.000+00 _key= _headers=[] _tombstone=false a=5`,
		`4:12 MalformedSource: the message's timestamp, 1152921504606846976 ms, is out of the range of the column _timestamp`))

	// A key that is no text has a column of its own, from the message on that brings one.
	batch = batchOf(4, 14, `{"a":6}`, `{"a":7}`, `{"a":8}`)
	batch.Records[1].Key = []byte{0xff, 0}
	b = New(Options{Include: []string{"key"}})
	b.Add(batch)
	chunks, _ = all(t, b, shape)
	compare(t, shown(chunks...), lines("4:14 _key=k14 a=6", "add _key_bytes bytea", `4:15 _key=\N _key_bytes=\\xff00 a=7`, `4:16 _key=k16 _key_bytes=\N a=8`))

	// One that somebody dropped is added again; one that they changed is written to as it is.
	b = New(Options{Include: []string{"key", "timestamp"}})
	b.Add(batchOf(4, 17, `{"a":9}`))
	compare(t, shown(cut(t, b, shapeOf("a:bigint", "_key:text", "_key_bytes:bytea"))), lines("add _timestamp timestamp with time zone", `4:17 _timestamp=2026-01-01 00:00:00.123+00 _key=k17 _key_bytes=\N a=9`))
}

func TestRawValues(t *testing.T) {
	b := New(Options{Format: FormatRaw, Include: []string{"offset"}})
	b.Add(batchOf(0, 0, "\x00\xff\\", "", "<null>", "{}"))
	chunks, _ := all(t, b, nil)
	compare(t, shown(chunks...), lines("add payload bytea", "add _offset bigint", `0:0 _offset=0 payload=\\x00ff5c`, `0:1 _offset=1 payload=\\x`, `0:3 _offset=3 payload=\\x7b7d`,
		"0:2 MalformedSource: "+tombstone([]byte("k2"))))
}

func TestDocuments(t *testing.T) {
	b := New(Options{Layout: LayoutDocument})
	b.Add(batchOf(0, 0, "\xef\xbb\xbf {\"id\": 1,\n\"payload\":null} ", `{}`, `[1]`, `{"a":"x\ty"}`))
	chunks, _ := all(t, b, nil)
	compare(t, shown(chunks...), lines("add payload jsonb", `0:0 payload={"id": 1,\n"payload":null}`, "0:1 payload={}", `0:3 payload={"a":"x\\ty"}`,
		"0:2 MalformedSource: not an object: the value is an array"))

	b = New(Options{Layout: LayoutDocument, Exclude: []string{"pii"}, Rename: map[string]string{"a": "b\"c"}})
	b.Add(batchOf(0, 0, `{"a": 1.0, "pii": {"x":1}, "n":null}`, `{"pii":1}`, `{"a":1,"b\"c":2}`))
	chunks, _ = all(t, b, shapeOf("payload:jsonb"))
	compare(t, shown(chunks...), lines(`0:0 payload={"b\\"c":1.0,"n":null}`, "0:1 payload={}",
		`0:2 MalformedSource: the fields "a" and "b\"c" of one message both go to the column "b\"c"`))
}

func TestFilter(t *testing.T) {
	o := Options{MaxMessageBytes: 8, Filter: &Filter{Headers: map[string][]string{"type": {"order.created", "order.paid"}}, KeyPrefix: "FR-"}}
	b := New(o)
	batch := batchOf(0, 0, `{"a":1}`, `{"a":2}`, `{"a":3}`, `bad`, "<null>", `{"a":"much too large"}`, "<null>")
	header := func(value string) kafka.Header { return kafka.Header{Key: "type", Value: []byte(value)} }
	for i := range batch.Records {
		batch.Records[i].Key = []byte("FR-1")
		batch.Records[i].Headers = []kafka.Header{{Key: "x"}, header("order.paid")}
	}
	batch.Records[1].Key = []byte("DE-1")
	batch.Records[2].Headers = []kafka.Header{header("other")}
	batch.Records[3].Headers = nil
	batch.Records[4].Key = nil
	batch.Records[5].Key = nil
	batch.Records[6].Headers = []kafka.Header{header("other"), header("order.created")}
	b.Add(batch)
	c := cut(t, b, shapeOf("a:bigint"))
	compare(t, shown(c), lines("0:0 a=1", "0:6 MalformedSource: "+tombstone([]byte("FR-1"))))
	if a := c.Advances[0]; a.Filtered != 5 || a.NoRecord != 0 {
		t.Errorf("advance %+v", a)
	}
	if !c.Letters[0].Tombstone || string(c.Letters[0].Raw.Key) != "FR-1" {
		t.Errorf("letter %+v", c.Letters[0])
	}
}

func TestTombstonesNameTheDeletedKey(t *testing.T) {
	for key, want := range map[string]string{"1299": "key '1299'", "a\x00\xff\n": `key 'a\x00\xff\n'`, strings.Repeat("k", 500): "key '" + strings.Repeat("k", 120) + "…'"} {
		if got := tombstone([]byte(key)); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if got := tombstone(nil); !strings.Contains(got, "without a key") {
		t.Error(got)
	}
}

func TestALargeRecordWithoutItsBytes(t *testing.T) {
	b := New(Options{MaxMessageBytes: 32 << 20})
	b.Add(kafka.Batch{Partition: 1, From: 5, Next: 6, Epoch: 1, Records: []kafka.Record{{Offset: 5, Key: []byte("k"), TooLarge: 40_000_000, Value: []byte("{")}}})
	c := cut(t, b, nil)
	compare(t, shown(c), "1:5 TooLarge: the value has 40000000 bytes, and max_message_bytes is 33554432")
	if l := c.Letters[0]; l.Tombstone || l.Size != 40_000_000 || string(l.Raw.Value) != "{" {
		t.Errorf("the letter of a large value: %+v", l)
	}
}

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// write writes records to partition 0 of a topic, in order.
func (f *fixture) write(topic string, recs ...*kgo.Record) {
	f.Helper()
	for _, r := range recs {
		r.Topic = topic
	}
	if err := f.kafka.ProduceSync(f.Context(), recs...).FirstErr(); err != nil {
		f.Fatal(err)
	}
}

// columns lists a table's columns after the seven of the system, with their types.
func (f *fixture) columns(table string) string {
	f.Helper()
	return f.text(`SELECT string_agg(quote_ident(attname) || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 7 AND NOT attisdropped`, "connector."+table)
}

// What the manifest says of a message is what the table holds: the columns, and a row of them.
func TestWhatAMessageBecomes(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	topic := f.topic("map", 1, nil)
	at := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	f.write(topic,
		&kgo.Record{Key: []byte("FR-1"), Timestamp: at, Value: []byte(`{"id":7,"name":"a","pii":"secret","o":{"x":1}}`), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte("2")}, {Key: "b", Value: []byte{0xff, 0}}, {Key: "n"}}},
		&kgo.Record{Key: []byte{0xff, 0xfe}, Timestamp: at, Value: []byte(`{"id":8,"name":"b","pii":"secret"}`)},
		&kgo.Record{Timestamp: at, Value: []byte(`{"id":8,"name":"b","pii":"other"}`)})
	for name, c := range map[string]struct {
		extra, columns, row string
		rows, written       int64
	}{
		"renamed":  {`,"rename":{"id":"partner_id","o":"Order \"1\""}`, `partner_id bigint, name text, pii text, "Order ""1""" jsonb`, `7 a secret {"x": 1}`, 3, 3},
		"excluded": {`,"rename":{"id":"partner_id"},"exclude":["pii","o"]`, `partner_id bigint, name text`, `7 a`, 3, 2},
		"only":     {`,"rename":{"id":"partner_id"},"only":["id","o","absent"]`, `partner_id bigint, o jsonb`, `7 {"x": 1}`, 3, 2},
		"included": {
			`,"rename":{"id":"partner_id"},"only":["id"],"include":["topic","partition","offset","timestamp","key","headers","tombstone"]`,
			`partner_id bigint, _topic text, _partition integer, _offset bigint, _timestamp timestamp with time zone, _key text, _key_bytes bytea, _headers jsonb, _tombstone boolean`,
			`7 ` + topic + ` 0 0 ` + f.text("SELECT $1::timestamptz", at) + ` FR-1 [["h", "1"], ["h", "2"], ["b", {"base64": "/wA="}], ["n", null]] f`, 3, 2,
		},
		"document": {`,"layout":"document","exclude":["pii"],"rename":{"id":"ID"}`, `payload jsonb`, `{"o": {"x": 1}, "ID": 7, "name": "a"}`, 3, 2},
		"raw":      {`,"format":"raw"`, `payload bytea`, f.text(`SELECT '{"id":7,"name":"a","pii":"secret","o":{"x":1}}'::text::bytea`), 3, 3},
		"typed":    {`,"rename":{"id":"n"},"types":{"id":"numeric(10,2)","o":"text"},"only":["id","o"]`, `n numeric(10,2), o text`, `7.00 {"x":1}`, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := *f
			f.TB = t
			f.declare(name, topic, c.extra)
			e := f.completed(name, 3, c.rows)
			if e.Duplicates != c.rows-c.written {
				t.Errorf("%d duplicates, want %d", e.Duplicates, c.rows-c.written)
			}
			if got := f.columns("t_" + name); got != c.columns {
				t.Errorf("the columns are %s, want %s", got, c.columns)
			}
			list := f.text("SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 7 AND NOT attisdropped", "connector.t_"+name)
			f.want(c.row, fmt.Sprintf("SELECT concat_ws(' ', %s) FROM connector.t_%s ORDER BY id LIMIT 1", list, name))
			f.want(fmt.Sprintf("kafka:%s:0:0|%s|1|1", topic, e.RunID), fmt.Sprintf("SELECT concat_ws('|', _source, _run_id, _mapping_version, tenant_id) FROM connector.t_%s ORDER BY id LIMIT 1", name))
			if strings.Contains(c.extra, "exclude") {
				f.want("0", fmt.Sprintf("SELECT count(*) FROM connector.t_%s AS t WHERE t::text LIKE '%%secret%%'", name))
			}
		})
	}
	f.want(`\xfffe`, "SELECT _key_bytes FROM connector.t_included WHERE _offset = 1")
	f.want("<null>", "SELECT coalesce(_key, encode(_key_bytes, 'hex')) FROM connector.t_included WHERE _offset = 2")
}

// What counts as the same message: its content, its offset, or nothing at all.
func TestDedup(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	topic := f.topic("dedup", 2, nil)
	f.produce(topic, 0, `{"a":1,"b":{"x":1,"y":2}}`, `{"b":{"y":2,"x":1},"a":1}`, `{"a":1,"b":{"x":1,"y":2},"c":null}`, `{"a":1.0}`, `{"a":2}`)
	f.produce(topic, 1, `{"a":2}`, `{ "a" : 2 }`)
	for name, want := range map[string][3]int64{"content": {3, 4, 7}, "offset": {7, 0, 7}, "none": {7, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			f := *f
			f.TB = t
			f.declare(name, topic, fmt.Sprintf(`,"dedup":%q`, name))
			e := f.completed(name, 7, 7)
			f.want(fmt.Sprint(want[0]), "SELECT count(*) FROM connector.t_"+name)
			f.exec("SELECT connector.reset_cursor($1)", name)
			again := f.completed(name, 7, 7)
			if e.Duplicates != want[1] || again.Duplicates != want[2] {
				t.Errorf("%d duplicates, then %d, want %d, then %d", e.Duplicates, again.Duplicates, want[1], want[2])
			}
			f.want("true", "SELECT bool_and(one.id < two.id) FROM connector.t_"+name+" AS one JOIN connector.t_"+name+
				" AS two ON split_part(one._source, ':', 3) = split_part(two._source, ':', 3) AND one._run_id = two._run_id AND split_part(one._source, ':', 4)::int < split_part(two._source, ':', 4)::int")
		})
	}
}

// A filter passes messages over: counted, never set aside, not even where they could not be read.
func TestFilter(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("filter", 1, nil)
		kind := func(v string) kgo.RecordHeader { return kgo.RecordHeader{Key: "type", Value: []byte(v)} }
		f.write(topic,
			record(topic, "FR-1", []byte(`{"n":1}`), kind("order.created")),
			record(topic, "FR-2", []byte(`{"n":2}`), kind("order.deleted")),
			record(topic, "DE-3", []byte(`{"n":3}`), kind("order.created")),
			record(topic, "FR-4", []byte(`broken`), kind("order.deleted")),
			record(topic, "FR-5", []byte(`broken`), kind("x"), kind("order.created")),
			record(topic, "FR-6", []byte(`{"n":6}`), kind("x"), kind("order.created")),
			record(topic, "FR-7", nil, kind("x")),
		)
		f.sidecar(nil)
		f.declare("filter", topic, `,"filter":{"headers":{"type":["order.created"]},"key_prefix":"FR-"}`)
		e := f.completed("filter", 7, 2)
		f.want("4|1|5", "SELECT concat_ws('|', filtered, dead_letters, skipped) FROM connector.runs WHERE run_id = $1", e.RunID)
		f.want("1,6", "SELECT string_agg(n::text, ',' ORDER BY id) FROM connector.t_filter")
		f.want("4", `SELECT "offset" FROM connector.dlq`)
		f.want("7|4|1|2|0", "SELECT concat_ws('|', advanced, filtered, dead_letters, written, no_record) FROM connector.accounting WHERE run_id = $1", e.RunID)
	})
}

// Large values land; a letter keeps up to a MiB of one, and shows its beginning in any case.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		max := "12000000"
		topic := f.topic("large", 1, map[string]*string{"max.message.bytes": &max})
		cl, err := kgo.NewClient(kgo.SeedBrokers(f.brokers), kgo.ProducerBatchMaxBytes(11<<20), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		noise := strings.Join(padded(0, 800), "")
		for _, v := range []string{
			`{"n":1,"s":"` + strings.Repeat("€", 2_700_000) + `"}`, // 8 MB
			`{"n":2,"s":"` + noise[:3<<20],                         // cut off
			`{"n":3,"s":"` + strings.Repeat("x", 9<<20) + `"}`,     // over the limit
			`{"n":4}`,
		} {
			if err := cl.ProduceSync(t.Context(), record(topic, "k", []byte(v))).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		f.sidecar(nil)
		f.declare("large", topic, `,"max_message_bytes":9000000`)
		f.completed("large", 4, 2)
		f.want("1 2700000,4", "SELECT string_agg(concat_ws(' ', n, length(s)), ',' ORDER BY id) FROM connector.t_large")
		f.want("1 MalformedSource <null> 8192,2 TooLarge <null> 8192", `SELECT string_agg(concat_ws(' ', "offset", reason, coalesce(length(raw)::text, '<null>'), length(payload->'raw'->>0)), ',' ORDER BY "offset") FROM connector.dlq`)
		f.says(f.text(`SELECT message FROM connector.dlq WHERE "offset" = 2`), "9437198 bytes", "9000000")
	})
}

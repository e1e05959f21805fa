package build

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"highwater/queue/land"
	"highwater/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// copyIn makes a temporary table for the chunks and copies their rows into it, as landing would.
func copyIn(t *testing.T, conn *pgx.Conn, chunks []*land.Chunk) {
	t.Helper()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec("CREATE TEMPORARY TABLE landed (offset_ bigint, hash text UNIQUE)")
	for _, c := range chunks {
		for _, a := range c.Alters {
			name := pgx.Identifier{a.Column}.Sanitize()
			if a.Widen {
				exec(fmt.Sprintf("ALTER TABLE landed ALTER COLUMN %s TYPE %s USING %s::%s", name, a.Type, name, a.Type))
			} else {
				exec(fmt.Sprintf("ALTER TABLE landed ADD COLUMN %s %s", name, a.Type))
			}
		}
		for g, columns := range c.Columns {
			names := []string{"offset_", "hash"}
			for _, name := range columns {
				names = append(names, pgx.Identifier{name}.Sanitize())
			}
			var text bytes.Buffer
			for i := range c.Rows {
				if r := &c.Rows[i]; int(r.Group) == g {
					fmt.Fprintf(&text, "%d\t%s%s\n", r.Offset, r.Hash, r.Text)
				}
			}
			if _, err := conn.PgConn().CopyFrom(t.Context(), &text, "COPY landed ("+strings.Join(names, ", ")+") FROM STDIN"); err != nil {
				t.Fatalf("%v\n%s", err, shown(c))
			}
		}
	}
}

// The text of a row is judged by the one reader that counts: what PostgreSQL makes of it must be what the message said.
func TestPostgreSQLReadsWhatTheMessagesSaid(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), harness.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()

	type want map[string]string // column → its text in the database
	messages := []struct {
		value string
		want  want
	}{
		{
			`{"s":"a\tb\nc\rd\\e\\N\\.\u0001\u007f\"","n":1,"b":true,"j":{"k":["\\n\t",1.50,null]}}`,
			want{"s": "a\tb\nc\rd\\e\\N\\.\x01\x7f\"", "n": "1", "b": "true", "j": `{"k": ["\\n\t", 1.50, null]}`},
		},
		{"{\"s\":\"\\\\N\",\"n\":-0,\"b\":false,\"j\":[ 1,\n\t2,\r\"\\u00e9\\ud83d\\ude00\\/\" ]}", want{"s": `\N`, "n": "0", "b": "false", "j": `[1, 2, "é😀/"]`}},
		{`{"s":"","n":9223372036854775807,"b":null,"j":"x\"y\\"}`, want{"s": "", "n": "9223372036854775807", "b": "<null>", "j": `"x\"y\\"`}},
		{`{"s":"\\.","n":null,"j":1e3}`, want{"s": `\.`, "n": "<null>", "b": "<null>", "j": "1000"}},
		{`{"s":{"a": "b\\c"},"n":1e999,"j":true}`, want{"s": `{"a": "b\\c"}`, "n": "1" + strings.Repeat("0", 999), "j": "true"}},
		{`{"s":12.50,"n":0.1234567890123456789,"j":-0.50}`, want{"s": "12.50", "n": "0.1234567890123456789", "j": "-0.50"}},
		{
			`{"n":-0.0,"num":1.10,"\"q\"; --":1,"bin":"AP8=","at":"2024-03-01T00:30:00+02:00","d":0.1}`,
			want{"n": "0.0", "num": "1.10", "\"q\"; --": "1", "bin": `\x00ff`, "at": "2024-02-29 22:30:00+00", "d": "0.1"},
		},
	}
	b := New(Options{
		ChunkRows: 3, Include: []string{"timestamp", "headers", "key"},
		Types: map[string]string{"s": "text", "j": "jsonb", "bin": "bytea", "at": "timestamptz", "num": "numeric(10,2)", "d": "double precision"},
	})
	values := make([]string, len(messages))
	for i, m := range messages {
		values[i] = m.value
	}
	batch := batchOf(0, 0, values...)
	batch.Records[0].Timestamp, batch.Records[0].Key = 253402300800000, []byte("tab\there\\")
	batch.Records[1].Timestamp, batch.Records[1].Key = -62135596800000, []byte{0, 0xff}
	batch.Records[2].Timestamp = -1
	batch.Records[0].Headers = append(batch.Records[0].Headers, land.Header{Key: "h\\\t\"", Value: []byte("\x01\u2028\\")}, land.Header{Key: "h", Value: []byte{0}}, land.Header{Key: "n"})
	messages[0].want["_timestamp"], messages[0].want["_key"] = "10000-01-01 00:00:00+00", "tab\there\\"
	messages[0].want["_headers"] = `[["h\\\t\"", "\u0001` + "\u2028" + `\\"], ["h", {"base64": "AA=="}], ["n", null]]`
	messages[1].want["_timestamp"], messages[1].want["_key"], messages[1].want["_key_bytes"] = "0001-01-01 00:00:00+00", "<null>", `\x00ff`
	messages[2].want["_timestamp"], messages[2].want["_headers"] = "<null>", "[]"
	b.Add(batch)
	chunks, _ := all(t, b, nil)
	if _, err := conn.Exec(t.Context(), "SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	copyIn(t, conn, chunks)
	for i, m := range messages {
		for column, want := range m.want {
			var got string
			sql := fmt.Sprintf("SELECT coalesce(%s::text, '<null>') FROM landed WHERE offset_ = $1", pgx.Identifier{column}.Sanitize())
			if err := conn.QueryRow(t.Context(), sql, i).Scan(&got); err != nil {
				t.Fatalf("message %d: %v\n%s", i, err, shown(chunks...))
			}
			if got != want {
				t.Errorf("message %d, column %s: the database has %q, the message said %q", i, column, got, want)
			}
		}
	}
}

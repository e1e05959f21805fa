package build

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"

	"highwater/queue/land"
	"highwater/reader/kafka"
)

// many gives n messages {"a":i}.
func many(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf(`{"a":%d}`, i)
	}
	return s
}

func sizes(chunks []*land.Chunk) string {
	var s []int
	for _, c := range chunks {
		s = append(s, len(c.Rows)+len(c.Letters))
	}
	return fmt.Sprint(s)
}

func TestANewColumnBeginsAChunkOf500(t *testing.T) {
	values := many(2000)
	values[700] = `{"a":1,"n":1}`
	values[900] = `{"a":1,"n":1.5,"m":true}`
	b := New(Options{ChunkRows: 1000})
	b.Add(batchOf(0, 0, values...))
	chunks, _ := all(t, b, nil)
	if got := sizes(chunks); got != "[500 200 500 800]" {
		t.Fatalf("chunks %s", got)
	}
	compare(t, fmt.Sprint(chunks[0].Alters, chunks[1].Alters, chunks[2].Alters, chunks[3].Alters),
		"[{a a bigint false}] [] [{n n numeric false} {m m boolean false}] []")
	if c := chunks[2]; c.Rows[0].Offset != 700 || c.Advances[0].From != 700 || c.Advances[0].To != 1200 {
		t.Fatalf("the chunk begins at %d and covers %v", c.Rows[0].Offset, c.Advances)
	}
}

func TestChunksGrowWhenTheyLandRowsAndTheRunIsBehind(t *testing.T) {
	b := New(Options{})
	shape := shapeOf("a:bigint")
	var got []int
	next := int64(0)
	cutAll := func(rows int, behind bool) {
		for !b.Full() {
			b.Add(batchOf(0, next, many(1000)...))
			next += 1000
		}
		c := cut(t, b, shape)
		got = append(got, len(c.Rows))
		b.Landed(rows, behind)
	}
	for range 3 {
		cutAll(0, true) // nothing but duplicates of poison: stays
	}
	for range 7 {
		cutAll(1, true)
	}
	cutAll(1, false)
	if fmt.Sprint(got) != "[500 500 500 500 1000 2000 4000 8000 10000 10000 10000]" {
		t.Fatalf("chunks %v", got)
	}
	fixed := New(Options{ChunkRows: 7})
	fixed.Landed(7, true)
	fixed.Add(batchOf(0, 0, many(10)...))
	if c := cut(t, fixed, shape); len(c.Rows) != 7 {
		t.Fatalf("a fixed chunk has %d rows", len(c.Rows))
	}
}

func TestChunksAreBoundedByBytes(t *testing.T) {
	b := New(Options{ChunkBytes: 100})
	big := `{"a":"` + strings.Repeat("x", 200) + `"}`
	b.Add(batchOf(0, 0, `{"a":"1"}`, big, `{"a":"2"}`, `{"a":"`+strings.Repeat("y", 50)+`"}`, `{"a":"`+strings.Repeat("z", 50)+`"}`))
	if !b.Full() {
		t.Fatal("not full")
	}
	chunks, _ := all(t, b, shapeOf("a:text"))
	if got := sizes(chunks); got != "[1 1 2 1]" {
		t.Fatalf("chunks %s", got)
	}
	if chunks[1].Bytes != len(big) || b.Full() || b.messages != 0 || b.bytes != 0 {
		t.Fatalf("%d bytes, %d messages and %d bytes left", chunks[1].Bytes, b.messages, b.bytes)
	}
}

func TestAdvancesAccountForEveryOffset(t *testing.T) {
	b := New(Options{ChunkRows: 3})
	shape := shapeOf("a:bigint")
	gaps := batchOf(2, 10, many(4)...) // offsets 10, 12, 15, 16 of [10,20)
	gaps.Records[1].Offset, gaps.Records[2].Offset, gaps.Records[3].Offset, gaps.Next = 12, 15, 16, 20
	b.Add(gaps)
	b.Add(kafka.Batch{Partition: 1, From: 5, Next: 9, Epoch: -1, Proved: true})
	b.Add(kafka.Batch{Partition: 0, From: 7, Next: 7, Proved: true})
	b.Add(batchOf(2, 20, many(1)...))
	first, second := cut(t, b, shape), cut(t, b, shape)
	compare(t, fmt.Sprint(first.Advances, second.Advances), "[{2 10 16 3 0 0 3}] [{1 5 9 -1 0 0 4} {2 16 21 3 0 0 3}]")
	if b.Pending() {
		t.Fatal("something is left")
	}
	if c, err := b.Cut(shape); c != nil || err != nil {
		t.Fatalf("got %v, %v of nothing", c, err)
	}
}

func TestBatchesThatDoNotFollowEachOtherAreRefused(t *testing.T) {
	for name, add := range map[string]kafka.Batch{"a gap": batchOf(0, 3, `{}`), "an overlap": batchOf(0, 1, `{}`)} {
		b := New(Options{})
		b.Add(batchOf(0, 0, `{}`, `{}`))
		b.Add(add)
		if _, err := b.Cut(shapeOf()); err == nil || !strings.Contains(err.Error(), "does not follow") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	b := New(Options{})
	twice := batchOf(0, 0, `{}`, `{}`)
	twice.Records[1].Offset = 0
	b.Add(twice)
	if _, err := b.Cut(shapeOf()); err == nil {
		t.Error("an offset twice: no error")
	}
}

func TestNothingIsCutWhereTheRunEnds(t *testing.T) {
	b := New(Options{})
	b.Add(batchOf(0, 0, `{"a":1}`, `{"id":1}`))
	shape := shapeOf("a:bigint")
	for range 2 {
		if c, err := b.Cut(shape); c != nil || err == nil {
			t.Fatalf("got %v, %v", c, err)
		}
	}
}

func TestContentHash(t *testing.T) {
	hash := func(o Options, value string) string {
		t.Helper()
		b := New(o)
		b.Add(batchOf(0, 0, value))
		c := cut(t, b, nil)
		if len(c.Rows) != 1 {
			t.Fatalf("%s: %s", value, shown(c))
		}
		if h := c.Rows[0].Hash; len(h) != 27 || strings.Trim(h, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("hash %q", h)
		}
		return c.Rows[0].Hash
	}
	plain := Options{}
	renamed := Options{Rename: map[string]string{"x": "a"}}
	included := Options{Include: []string{"offset", "key"}}
	only := Options{Only: []string{"a"}}
	doc := Options{Layout: LayoutDocument}
	raw := Options{Format: FormatRaw}
	type side struct {
		o     Options
		value string
	}
	for _, same := range [][2]side{
		{{plain, `{"a":1,"b":"é"}`}, {plain, ` { "b" : "\u00e9", "a":1 }`}},
		{{plain, `{"a":1,"n":null}`}, {plain, `{"a":1}`}},
		{{plain, `{"a":1}`}, {renamed, `{"x":1}`}},
		{{plain, `{"a":1}`}, {included, `{"a":1}`}},
		{{plain, `{"a":1}`}, {only, `{"b":2,"a":1}`}},
		{{plain, `{"o":{"x":1,"y":null}}`}, {plain, `{"o":{"y":null,"x":1}}`}},
		{{doc, `{"a":1,"b":null}`}, {doc, `{"b":null, "a":1}`}},
	} {
		if hash(same[0].o, same[0].value) != hash(same[1].o, same[1].value) {
			t.Errorf("%s and %s differ", same[0].value, same[1].value)
		}
	}
	for _, other := range [][2]side{
		{{plain, `{"a":1}`}, {plain, `{"a":1.0}`}},
		{{plain, `{"a":1}`}, {plain, `{"a":"1"}`}},
		{{plain, `{"a":1}`}, {plain, `{"b":1}`}},
		{{plain, `{"a":{"b":1}}`}, {plain, `{"a":{"b":1,"c":null}}`}},
		{{plain, `{"a":"b","c":"d"}`}, {plain, `{"a":"bc","c":"d"}`}},
		{{doc, `{"a":1,"b":null}`}, {doc, `{"a":1}`}},
		{{raw, `{"a":1}`}, {raw, `{"a": 1}`}},
	} {
		if hash(other[0].o, other[0].value) == hash(other[1].o, other[1].value) {
			t.Errorf("%s and %s share a hash", other[0].value, other[1].value)
		}
	}
	// Pinned, because a change would let every message land once more after a reset.
	compare(t, hash(plain, `{"b":{"y":[1,"é",null],"x":true},"a":1.50,"s":"t"}`), "tZWpFTCN7OKVjPXSNZHUfvi8ceI")
}

func TestAHashDoesNotDependOnTheTable(t *testing.T) {
	value := `{"a":1,"b":"x"}`
	seen := map[string]bool{}
	for _, shape := range []string{"a:bigint b:text", "b:jsonb a:text", "a:numeric b:text c:text"} {
		b := New(Options{})
		b.Add(batchOf(0, 0, value, `{"c":1}`, value))
		for _, r := range cut(t, b, shapeOf(strings.Fields(shape+" c:text")...)).Rows {
			if r.Offset != 1 {
				seen[r.Hash] = true
			}
		}
	}
	if len(seen) != 1 {
		t.Errorf("hashes %v", seen)
	}
}

func TestPositionHashesGrowAndTellIncarnationsApart(t *testing.T) {
	hash := func(o Options, partition int32, offset int64) string {
		b := New(o)
		b.Add(batchOf(partition, offset, `{"a":1}`))
		return cut(t, b, shapeOf("a:bigint")).Rows[0].Hash
	}
	topic := Options{Dedup: DedupOffset, ClusterID: "c", Topic: "t", TopicID: uuid.UUID{1}, RunID: uuid.UUID{9}}
	last := ""
	for _, at := range [][2]int64{{0, 0}, {0, 1}, {0, 9}, {0, 10}, {0, 31}, {0, 32}, {0, 1 << 40}, {0, 1<<62 + 1}, {1, 0}, {9, 5}, {10, 4}, {1 << 30, 0}} {
		h := hash(topic, int32(at[0]), at[1])
		if h <= last || len(h) != 30 {
			t.Errorf("%v: %q does not grow from %q", at, h, last)
		}
		last = h
	}
	same, other := topic, []Options{topic, topic, topic, topic}
	same.RunID = uuid.UUID{8}
	if hash(topic, 3, 4) != hash(same, 3, 4) {
		t.Error("offset: the run counts")
	}
	other[0].ClusterID, other[1].Topic, other[2].TopicID, other[3].Dedup = "d", "u", uuid.UUID{2}, DedupNone
	for _, o := range other {
		if hash(topic, 3, 4) == hash(o, 3, 4) {
			t.Errorf("%+v shares a hash", o)
		}
	}
	none := Options{Dedup: DedupNone, RunID: uuid.UUID{9}}
	again := Options{Dedup: DedupNone, RunID: uuid.UUID{8}}
	if hash(none, 3, 4) == hash(again, 3, 4) || hash(none, 3, 5) < hash(none, 3, 4) {
		t.Error("none: unique by run, partition and offset")
	}
}

// However a topic is cut into batches and chunks, the same messages become the same rows and letters.
func TestCuttingChangesNothingAboutTheRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]string, 3000)
	for i := range values {
		switch random.IntN(12) {
		case 0:
			values[i] = `{"a":"not a number"}`
		case 1:
			values[i] = "<null>"
		case 2:
			values[i] = fmt.Sprintf(`{"b":{"k":%d},"a":%d}`, i, i)
		case 3:
			values[i] = `{"a":1,"a":2}`
		case 4:
			values[i] = fmt.Sprintf(`{"state":"s%d"}`, i)
		default:
			values[i] = fmt.Sprintf(`{"a":%d,"s":"text %d"}`, i, i)
		}
	}
	shape := shapeOf("a:bigint", "s:text", "b:jsonb", "state:text")
	state, _ := shape.Column("state")
	state.HasDefault = true
	var want map[int64]string
	for round := range 20 {
		b := New(Options{ChunkRows: 1 + random.IntN(700), ChunkBytes: 200 + random.IntN(20000)})
		got := map[int64]string{}
		take := func() {
			c := cut(t, b, shape)
			for i := range c.Rows {
				got[c.Rows[i].Offset] = strings.ReplaceAll(sorted(rowOf(c, &c.Rows[i])), `=\N`, "") + c.Rows[i].Hash
			}
			for _, l := range c.Letters {
				got[l.Offset] = l.Message
			}
		}
		for at := 0; at < len(values); {
			n := min(1+random.IntN(400), len(values)-at)
			b.Add(batchOf(0, int64(at), values[at:at+n]...))
			at += n
			for b.Full() {
				take()
			}
		}
		for b.Pending() {
			take()
		}
		if round == 0 {
			want = got
		}
		if len(got) != len(values) {
			t.Fatalf("%d of %d messages", len(got), len(values))
		}
		for offset, is := range got {
			if want[offset] != is {
				t.Fatalf("offset %d is %s, was %s", offset, is, want[offset])
			}
		}
	}
}

// sorted gives a row's filled values in the order of their columns' names.
func sorted(row string) string {
	var keep []string
	for _, v := range strings.Split(row, " ") {
		if v != "" && !strings.HasSuffix(v, `=\N`) {
			keep = append(keep, v)
		}
	}
	for i := range keep {
		for j := i + 1; j < len(keep); j++ {
			if keep[j] < keep[i] {
				keep[i], keep[j] = keep[j], keep[i]
			}
		}
	}
	return strings.Join(keep, " ")
}

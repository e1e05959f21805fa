package kafka

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// recipe is a record batch to be written, true or false.
type recipe struct {
	base     int64
	deltas   []int64 // of its records
	last     int32   // last offset delta
	count    int32   // -1: as many as there are
	attrs    int16
	producer int64
	key      []byte
	tail     []byte // behind its records
	maxTime  int64
}

func (r recipe) bytes() []byte {
	var body []byte
	for _, d := range r.deltas {
		var rec []byte
		rec = append(rec, 0)
		rec = kbin.AppendVarlong(rec, 5)
		rec = kbin.AppendVarint(rec, int32(d))
		rec = kbin.AppendVarintBytes(rec, r.key)
		rec = kbin.AppendVarintBytes(rec, []byte("v"))
		rec = kbin.AppendVarint(rec, 0)
		body = kbin.AppendVarint(body, int32(len(rec)))
		body = append(body, rec...)
	}
	body = append(body, r.tail...)
	count := r.count
	if count == -1 {
		count = int32(len(r.deltas))
	}
	b := kmsg.RecordBatch{
		FirstOffset: r.base, Length: int32(len(body)) + 49, PartitionLeaderEpoch: 3, Magic: 2, Attributes: r.attrs, LastOffsetDelta: r.last,
		FirstTimestamp: 100, MaxTimestamp: r.maxTime, ProducerID: r.producer, NumRecords: count, Records: body,
	}
	return sealed(b.AppendTo(nil))
}

// sealed sets the checksum.
func sealed(b []byte) []byte {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// good is a whole batch of n records from base on.
func good(base int64, n int) recipe {
	r := recipe{base: base, last: int32(n - 1), count: -1, producer: -1}
	for i := range n {
		r.deltas = append(r.deltas, int64(i))
	}
	return r
}

// decoded runs bytes through scan and decoder as a drain does, from position from.
func decoded(data []byte, from, target int64, aborted ...kmsg.FetchResponseTopicPartitionAbortedTransaction) (pieces []piece, s stretch, err error) {
	s = scan(data, from, target)
	if s.err != nil || s.next <= from {
		return nil, s, s.err
	}
	d := decoder{
		topic: topicName, connector: "partners", committed: true, valueMax: 1 << 20, decompress: kgo.DefaultDecompressor(),
		hand: func(_ context.Context, p piece) bool {
			pieces = append(pieces, p)
			return true
		},
	}
	_, err = d.guarded(context.Background(), answer{
		partition: 0, from: from, to: min(s.next, target), target: target, epoch: 9, records: s.records, data: data[:s.used], aborted: aborted,
	})
	return pieces, s, err
}

func offsets(pieces []piece) []int64 {
	var out []int64
	for _, p := range pieces {
		for _, r := range p.Records {
			out = append(out, r.Offset)
		}
	}
	return out
}

func TestPositionsMoveByHeaders(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name         string
		data         []byte
		from, target int64
		next         int64
		offsets      []int64
	}{
		{"whole batch", good(0, 3).bytes(), 0, 10, 3, []int64{0, 1, 2}},
		{"from inside a batch", good(0, 5).bytes(), 3, 10, 5, []int64{3, 4}},
		{"target inside a batch", good(0, 5).bytes(), 0, 3, 3, []int64{0, 1, 2}},
		{"gap before the batch", good(7, 2).bytes(), 4, 10, 9, []int64{7, 8}},
		{"gap inside and at the end", recipe{base: 0, deltas: []int64{1, 4}, last: 9, count: -1}.bytes(), 0, 20, 10, []int64{1, 4}},
		{"a batch emptied by compaction", recipe{base: 0, last: 9}.bytes(), 0, 20, 10, nil},
		{"an emptied compressed batch", recipe{base: 0, last: 9, attrs: 1}.bytes(), 0, 20, 10, nil},
		{"a control batch", recipe{base: 4, deltas: []int64{0}, count: -1, attrs: attrControl | attrTransactional, key: []byte{0, 0, 0, 1}}.bytes(), 4, 20, 5, nil},
		{"two batches, the second cut off", append(good(0, 2).bytes(), good(2, 2).bytes()[:40]...), 0, 20, 2, []int64{0, 1}},
		{"two batches, rubbish behind", append(good(0, 2).bytes(), 1, 2, 3), 0, 20, 2, []int64{0, 1}},
		{"an older batch first", append(good(0, 2).bytes(), good(2, 2).bytes()...), 2, 20, 4, []int64{2, 3}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pieces, _, err := decoded(tc.data, tc.from, tc.target)
			if err != nil {
				t.Fatal(err)
			}
			at := tc.from
			for _, p := range pieces {
				if p.From != at {
					t.Errorf("piece from %d, want %d", p.From, at)
				}
				at = p.Next
			}
			if at != tc.next {
				t.Errorf("next %d, want %d", at, tc.next)
			}
			if got := offsets(pieces); !equal(got, tc.offsets) {
				t.Errorf("offsets %v, want %v", got, tc.offsets)
			}
		})
	}
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestBytesThatAreNoBatch: every lie a batch can tell ends in an error that names the offset, and what came before it is
// handed on.
func TestBytesThatAreNoBatch(t *testing.T) {
	t.Parallel()
	flip := func(b []byte, at int, to byte) []byte { b[at] = to; return b }
	for name, bad := range map[string][]byte{
		"a wrong checksum":               flip(good(2, 2).bytes(), 65, 0x55),
		"more records claimed than held": recipe{base: 2, deltas: []int64{0}, last: 1, count: 2}.bytes(),
		"fewer records claimed":          recipe{base: 2, deltas: []int64{0, 1}, last: 1, count: 1}.bytes(),
		"records but no bytes":           recipe{base: 2, last: 1, count: 2}.bytes(),
		"a count of two billion":         recipe{base: 2, deltas: []int64{0}, last: 1, count: math.MaxInt32}.bytes(),
		"an offset behind the batch":     recipe{base: 2, deltas: []int64{0, 7}, last: 1, count: -1}.bytes(),
		"an offset before the batch":     recipe{base: 2, deltas: []int64{-1, 1}, last: 1, count: -1}.bytes(),
		"offsets that go back":           recipe{base: 2, deltas: []int64{1, 0}, last: 1, count: -1}.bytes(),
		"the same offset twice":          recipe{base: 2, deltas: []int64{1, 1}, last: 1, count: -1}.bytes(),
		"bytes behind the records":       recipe{base: 2, deltas: []int64{0, 1}, last: 1, count: -1, tail: []byte{1, 2}}.bytes(),
		"a codec that nobody knows":      recipe{base: 2, deltas: []int64{0, 1}, last: 1, count: -1, attrs: 7}.bytes(),
		"compressed rubbish":             recipe{base: 2, deltas: []int64{0, 1}, last: 1, count: -1, attrs: 1}.bytes(),
		"a control batch without a key":  recipe{base: 2, last: 1, count: 1, attrs: attrControl}.bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pieces, _, err := decoded(append(good(0, 2).bytes(), bad...), 0, 100)
			e := wantError(t, err, "internal", topicName+"[0]", "offset 2")
			if e.Partition != 0 || e.Offset != 2 {
				t.Errorf("partition %d, offset %d", e.Partition, e.Offset)
			}
			if got := offsets(pieces); len(got) < 2 || got[0] != 0 || got[1] != 1 {
				t.Errorf("offsets %v: the batch before is missing", got)
			}
		})
	}
}

func TestHeadersThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]byte){
		"format 3":               func(b []byte) { b[16] = 3 },
		"a negative length":      func(b []byte) { b[8] = 0xff },
		"a length of nothing":    func(b []byte) { copy(b[8:12], []byte{0, 0, 0, 0}) },
		"a negative base offset": func(b []byte) { b[0] = 0xff },
		"a negative last delta":  func(b []byte) { b[23] = 0xff },
		"a negative count":       func(b []byte) { b[57] = 0xff },
		"an end beyond int64":    func(b []byte) { copy(b, []byte{0x7f, 255, 255, 255, 255, 255, 255, 255}); b[26] = 9 },
	} {
		data := good(0, 2).bytes()
		change(data)
		if s := scan(data, 0, 100); s.err == nil || s.next != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := scan(good(0, 2).bytes()[:30], 0, 100); s.cut != len(good(0, 2).bytes()) || s.err != nil {
		t.Errorf("a batch that is cut off: %+v", s)
	}
}

// TestAbortedTransactions: out of order in the list, as Redpanda sends them, and a producer that aborts twice.
func TestAbortedTransactions(t *testing.T) {
	t.Parallel()
	tx := func(base int64, producer int64) []byte {
		return recipe{base: base, deltas: []int64{0}, count: -1, attrs: attrTransactional, producer: producer}.bytes()
	}
	marker := func(base int64, producer int64, kind byte) []byte {
		return recipe{base: base, deltas: []int64{0}, count: -1, attrs: attrTransactional | attrControl, producer: producer, key: []byte{0, 0, 0, kind}}.bytes()
	}
	const abort, commit = 0, 1
	var data []byte
	for _, b := range [][]byte{
		tx(0, 1), tx(1, 2), marker(2, 1, abort), tx(3, 1), marker(4, 1, commit), marker(5, 2, commit), tx(6, 1), good(7, 1).bytes(), marker(8, 1, abort), tx(9, 1), marker(10, 1, commit),
	} {
		data = append(data, b...)
	}
	pieces, _, err := decoded(data, 0, 100,
		kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: 1, FirstOffset: 6},
		kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: 1, FirstOffset: 0})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := offsets(pieces), []int64{1, 3, 7, 9}; !equal(got, want) {
		t.Errorf("offsets %v, want %v", got, want)
	}
}

func TestLargeBatchesAreHandedOnInPieces(t *testing.T) {
	t.Parallel()
	pieces, _, err := decoded(good(0, 20_000).bytes(), 0, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pieces {
		if len(p.Records) > pieceRecords || cap(p.Records) > pieceRecords {
			t.Errorf("a piece of %d records", len(p.Records))
		}
	}
	if got := offsets(pieces); len(got) != 20_000 || pieces[len(pieces)-1].Next != 20_000 {
		t.Errorf("%d records", len(got))
	}
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		attrs int16
		want  int64
	}{"the producer's": {0, 105}, "the broker's": {attrLogAppendTime, 777}} {
		r := good(0, 1)
		r.attrs, r.maxTime = tc.attrs, 777
		pieces, _, err := decoded(r.bytes(), 0, 10)
		if err != nil || pieces[0].Records[0].Timestamp != tc.want {
			t.Errorf("%s: %v %+v", name, err, pieces)
		}
		if pieces[0].Epoch != 3 {
			t.Errorf("epoch %d, want the batch's", pieces[0].Epoch)
		}
	}
}

// TestOldMessageFormats: logs written before Kafka 0.11.
func TestOldMessageFormats(t *testing.T) {
	t.Parallel()
	v1 := kmsg.MessageV1{Offset: 4, MessageSize: 24, Magic: 1, Timestamp: 123, Key: []byte("k"), Value: []byte("v")}
	b := v1.AppendTo(nil)
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	v0 := kmsg.MessageV0{Offset: 5, MessageSize: 16, Magic: 0, Key: []byte("k"), Value: []byte("w")}
	b0 := v0.AppendTo(nil)
	binary.BigEndian.PutUint32(b0[12:], crc32.ChecksumIEEE(b0[16:]))
	pieces, _, err := decoded(append(b, b0...), 4, 10)
	if err != nil {
		t.Fatal(err)
	}
	rs := pieces[0].Records
	if len(rs) != 2 || rs[0].Offset != 4 || rs[0].Timestamp != 123 || string(rs[0].Value) != "v" || rs[1].Offset != 5 || rs[1].Timestamp != -1 {
		t.Errorf("records %+v", rs)
	}
	if pieces[0].Next != 6 || pieces[0].Epoch != -1 {
		t.Errorf("next %d, epoch %d", pieces[0].Next, pieces[0].Epoch)
	}
}

// TestArbitraryBytes: whatever comes, also with a checksum that fits, is an error or a gapless row of pieces.
func TestArbitraryBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := append(good(0, 3).bytes(), recipe{base: 3, deltas: []int64{0, 2}, last: 4, count: -1, key: []byte("key")}.bytes()...)
		second := len(good(0, 3).bytes())
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "to")
		}
		if rapid.Bool().Draw(t, "fitting checksum") {
			sealed(data[second:])
		}
		data = data[:rapid.IntRange(0, len(data)).Draw(t, "length")]
		from := rapid.Int64Range(0, 6).Draw(t, "from")
		target := from + rapid.Int64Range(1, 10).Draw(t, "more")
		pieces, s, err := decoded(data, from, target)
		if err != nil && strings.Contains(err.Error(), "panicked") {
			t.Fatal(err)
		}
		at := from
		for _, p := range pieces {
			if p.From != at || p.Next <= p.From || p.Next > target {
				t.Fatalf("piece [%d,%d) at %d, target %d", p.From, p.Next, at, target)
			}
			at = p.Next
			before := p.From - 1
			for _, r := range p.Records {
				if r.Offset <= before || r.Offset >= p.Next {
					t.Fatalf("offset %d in [%d,%d)", r.Offset, p.From, p.Next)
				}
				before = r.Offset
			}
		}
		if err == nil && s.next > from && at != min(s.next, target) {
			t.Fatalf("at %d, want %d", at, min(s.next, target))
		}
	})
}

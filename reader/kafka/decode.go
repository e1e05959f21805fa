package kafka

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A piece is handed on when it holds so many records or bytes: small enough that memory stays flat whatever a batch
// decompresses to, large enough that the hand-over costs nothing per record.
const (
	pieceRecords = 8192
	pieceBytes   = 1 << 20
	recordBytes  = int64(unsafe.Sizeof(Record{}))
	// tooLargeKept is what is handed on of a value above the largest size: as much as a dead letter keeps.
	tooLargeKept = 1 << 20
)

// answer is one partition's share of a fetch answer, or a stretch that was proved empty.
type answer struct {
	partition int32
	from, to  int64
	target    int64
	epoch     int32
	records   int   // as the headers claim
	bytes     int64 // taken off the reader's budget for it
	data      []byte
	aborted   []kmsg.FetchResponseTopicPartitionAbortedTransaction
	proved    bool
}

// piece is a batch to hand on, with the memory that it holds. One without a batch (From == Next) ends an answer, whose
// bytes are free then.
type piece struct {
	Batch
	cost  int64
	freed int64
}

// decoder turns answers into batches. It belongs to one goroutine.
type decoder struct {
	topic      string
	connector  string
	committed  bool
	valueMax   int
	decompress kgo.Decompressor
	hand       func(context.Context, piece) bool // false: nobody listens any more

	a      answer
	pos    int64 // first offset not yet accounted for
	left   int   // records still to come, as the headers claim
	out    piece
	arena  []Header
	aborts aborts
}

// answer decodes one answer completely, or up to what is broken in it: everything before that is handed on, then an error
// is returned. It reports stop where the receiver is gone.
func (d *decoder) answer(ctx context.Context, a answer) (stop bool, err error) {
	d.a, d.pos, d.left = a, a.from, a.records
	d.aborts = newAborts(a.aborted)
	d.begin()
	if a.proved {
		d.out.Proved = true
		return !d.flush(ctx, a.to), nil
	}
	for rest := a.data; len(rest) > 0 && d.pos < a.to; {
		h, err := readHeader(rest)
		if err == nil && (h.size == 0 || h.size > len(rest)) {
			err = errTruncated
		}
		if err != nil {
			return !d.flush(ctx, d.pos), d.corrupt(d.pos, err)
		}
		b := rest[:h.size]
		rest = rest[h.size:]
		if h.last() < d.pos {
			d.left -= h.claims()
			continue
		}
		on, err := d.batch(ctx, h, b)
		if !on {
			return true, nil
		}
		if err != nil {
			return !d.flush(ctx, d.pos), d.broken(h, err)
		}
		d.pos = min(h.last()+1, a.to)
		d.out.Epoch = h.epoch
	}
	if d.pos < a.to {
		return !d.flush(ctx, d.pos), d.corrupt(d.pos, errTruncated)
	}
	return !d.flush(ctx, d.pos), nil
}

// batch adds the records of one batch. It reports on = false where the receiver is gone.
func (d *decoder) batch(ctx context.Context, h header, b []byte) (on bool, err error) {
	if h.magic <= legacyMagic {
		return d.old(ctx, b)
	}
	if err := h.verify(b); err != nil {
		return true, err
	}
	body := b[batchHeader:]
	if h.is(attrControl) {
		d.left -= h.claims()
		return true, d.aborts.marker(h, body)
	}
	if h.count == 0 || d.committed && d.aborts.covers(h) {
		d.left -= h.claims()
		return true, nil
	}
	if codec := kgo.CompressionCodecType(h.attrs & attrCodec); codec != kgo.CodecNone {
		if body, err = d.decompress.Decompress(body, codec); err != nil {
			return true, fmt.Errorf("decompressing: %w", err)
		}
		d.out.cost += int64(len(body))
	}
	return d.recordsOf(ctx, h, body)
}

// recordsOf adds the records of a batch's body that lie between the position and the target. All of them are read, so
// that a body that is not what its header says is found out.
func (d *decoder) recordsOf(ctx context.Context, h header, body []byte) (bool, error) {
	in := cursor{b: body}
	before := h.base - 1
	for range h.count {
		d.left--
		var (
			raw rawRecord
			err error
		)
		if raw, d.arena, err = in.record(d.arena); err != nil {
			return true, err
		}
		offset := h.base + raw.offsetDelta
		if offset <= before || offset > h.last() {
			return true, fmt.Errorf("offset %d follows %d in a batch that covers %d..%d", offset, before, h.base, h.last())
		}
		before = offset
		if offset < d.pos || offset >= d.a.to {
			continue
		}
		r := Record{Offset: offset, Timestamp: h.firstTime + raw.timeDelta, Key: raw.key, Value: raw.value, Headers: raw.headers}
		if h.is(attrLogAppendTime) {
			r.Timestamp = h.maxTime
		}
		if !d.add(ctx, r, h.epoch) {
			return false, nil
		}
	}
	if in.at != len(body) {
		return true, fmt.Errorf("%d bytes follow its %d records", len(body)-in.at, h.count)
	}
	return true, nil
}

func (d *decoder) old(ctx context.Context, b []byte) (bool, error) {
	records, err := d.legacy(b, d.pos)
	if err != nil {
		return true, err
	}
	for _, r := range records {
		if r.Offset >= d.pos && r.Offset < d.a.to && !d.add(ctx, r, -1) {
			return false, nil
		}
	}
	return true, nil
}

// add puts a record into the piece and hands that on when it is full.
func (d *decoder) add(ctx context.Context, r Record, epoch int32) bool {
	if r.Timestamp < 0 {
		r.Timestamp = -1
	}
	if len(r.Value) > d.valueMax {
		// A copy, so that the few bytes that a dead letter keeps do not hold the whole buffer.
		r.TooLarge, r.Value = len(r.Value), bytes.Clone(r.Value[:min(len(r.Value), tooLargeKept)])
	}
	if d.out.Records == nil {
		d.out.Records = make([]Record, 0, min(max(d.left, 0)+1, pieceRecords))
	}
	d.out.Records = append(d.out.Records, r)
	d.out.Bytes += len(r.Key) + len(r.Value)
	if len(d.out.Records) < pieceRecords && d.out.Bytes < pieceBytes {
		return true
	}
	d.out.Epoch = epoch
	d.pos = r.Offset + 1
	return d.flush(ctx, d.pos)
}

// begin starts the next piece where the last one ended.
func (d *decoder) begin() {
	d.out = piece{Batch: Batch{Partition: d.a.partition, From: d.pos, Epoch: d.a.epoch}}
}

// flush hands on what was collected, up to next.
func (d *decoder) flush(ctx context.Context, next int64) bool {
	if next <= d.out.From {
		return true
	}
	d.out.Next = next
	d.out.cost += int64(cap(d.out.Records)) * recordBytes
	if !d.hand(ctx, d.out) {
		return false
	}
	d.pos = next
	d.begin()
	return true
}

// broken makes the error of a batch that cannot be read.
func (d *decoder) broken(h header, err error) error {
	if errors.Is(err, kgo.ErrMaxDecompress) {
		return batchTooLarge(d.topic, d.connector, d.a.partition, h.base, h.last()+1, "decompresses to more than this reader takes")
	}
	return d.corrupt(h.base, err)
}

func (d *decoder) corrupt(offset int64, err error) *Error {
	return &Error{
		Code: codeInternal, Partition: d.a.partition, Offset: offset, LostFrom: -1, LostTo: -1, Retryable: true, Err: err,
		Message: fmt.Sprintf("%s[%d]: the record batch at offset %d cannot be read: %v", d.topic, d.a.partition, offset, err),
		Hint: fmt.Sprintf("Run the connector again; where it repeats, the broker's log is damaged there: SELECT connector.seek(%s, %d, <the offset behind it>); goes on without it.",
			literal(d.connector), d.a.partition),
	}
}

// batchTooLarge is a batch above a limit of this reader. next is the offset behind it, -1 where that is not known.
func batchTooLarge(topic, connector string, partition int32, offset, next int64, why string) *Error {
	behind := "<the offset behind it>"
	if next >= 0 {
		behind = fmt.Sprint(next)
	}
	return &Error{
		Code: codeBatchTooLarge, Partition: partition, Offset: offset, LostFrom: -1, LostTo: -1,
		Message: fmt.Sprintf("%s[%d]: the record batch at offset %d %s", topic, partition, offset, why),
		Hint: fmt.Sprintf("Raise max_message_bytes where one message is that large; else make the producer's batches smaller. SELECT connector.seek(%s, %d, %s); goes on without it.",
			literal(connector), partition, behind),
	}
}

// aborts knows which transactions of an answer were aborted. The broker lists every one that reaches into the answer; a
// producer's records from its first offset to its abort marker are not to be seen.
type aborts struct {
	waiting []kmsg.FetchResponseTopicPartitionAbortedTransaction // by first offset
	open    map[int64]struct{}                                   // producers inside an aborted transaction
}

func newAborts(list []kmsg.FetchResponseTopicPartitionAbortedTransaction) aborts {
	if len(list) == 0 {
		return aborts{}
	}
	// Not every broker sends them in order (Redpanda does not).
	slices.SortStableFunc(list, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	return aborts{waiting: list, open: map[int64]struct{}{}}
}

// reach opens the transactions that begin at or before offset.
func (a *aborts) reach(offset int64) {
	for len(a.waiting) > 0 && a.waiting[0].FirstOffset <= offset {
		a.open[a.waiting[0].ProducerID] = struct{}{}
		a.waiting = a.waiting[1:]
	}
}

func (a *aborts) covers(h header) bool {
	a.reach(h.last())
	_, aborted := a.open[h.producer]
	return aborted && h.is(attrTransactional)
}

// marker closes a producer's aborted transaction at its abort marker. Other control records mean nothing to a reader.
func (a *aborts) marker(h header, body []byte) error {
	a.reach(h.last())
	in := cursor{b: body}
	if h.count == 0 {
		return nil // its record was compacted away, and the records it spoke of before it
	}
	raw, _, err := in.record(nil)
	if err != nil {
		return err
	}
	const abort = 0
	if len(raw.key) >= 4 && binary.BigEndian.Uint16(raw.key[2:]) == abort {
		delete(a.open, h.producer)
	}
	return nil
}

package worker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"highwater/queue/build"
	"highwater/queue/land"
	"highwater/reader/kafka"
	"highwater/reader/plan"
	"highwater/sql/store"
	"highwater/sql/table"
)

// retried counts what became of the letters of a run, as far as this sidecar carried it.
type retried struct{ landed, filtered, again int64 }

// retry decodes the run's dead letters again and lands each in a transaction of its own. It asks no broker. A run that is
// taken over goes on with the letters that are not done.
func (r *run) retry(ctx context.Context) (store.End, error) {
	shape, err := r.w.o.Lander.Shape(ctx, r.landing())
	if err != nil {
		return store.End{}, err //nolint:wrapcheck // land names the table
	}
	var (
		all  retried
		down time.Time
	)
	for {
		letters, err := r.w.o.Store.RetryLetters(ctx, r.c.RunID)
		if err == nil && len(letters) == 0 {
			return r.endOfRetry(all), nil
		}
		if err == nil {
			shape, err = r.retryAll(ctx, letters, shape, &all)
		}
		switch {
		case err == nil:
			down = time.Time{}
			continue
		case errors.Is(err, land.ErrLetterClosed):
			continue // it is among the letters no more
		case !land.Lost(err):
			return store.End{}, err
		case down.IsZero():
			down = time.Now()
		case time.Since(down) > databaseWaitMax:
			return store.End{}, err
		}
		r.log.Warn("the database went away; the run goes on when it is back", "error", err)
		if err := r.again(ctx, true); err != nil {
			return store.End{}, err
		}
	}
}

// retryAll lands letters one by one and gives the table's shape after them.
func (r *run) retryAll(ctx context.Context, letters []store.Letter, shape *table.Shape, all *retried) (*table.Shape, error) {
	for i := range letters {
		if why := stopped(r.reading); why != nil {
			return shape, why
		}
		landed, c, err := r.retryOne(ctx, &letters[i], shape)
		if landed.Shape != nil {
			shape = landed.Shape
		}
		if err != nil {
			if why := stopped(r.reading); errors.Is(err, land.ErrStopped) && why != nil {
				return shape, why
			}
			return shape, err
		}
		all.again += landed.Letters
		all.landed += landed.Written + landed.Duplicates
		all.filtered += c.Advances[0].Filtered
		for _, line := range landed.Said {
			r.say(ctx, "INFO", line)
		}
		for _, f := range c.Findings {
			r.sayFinding(ctx, plan.Finding(f))
		}
		switch {
		case landed.Cancelled:
			return shape, errCancelled
		case time.Since(r.begun) > slice:
			return shape, errSlice
		}
	}
	return shape, nil
}

// retryOne decodes one letter and lands it, building it anew where the table has changed its shape meanwhile.
func (r *run) retryOne(ctx context.Context, l *store.Letter, shape *table.Shape) (land.Landed, *land.Chunk, error) {
	batch, err := batchOf(l)
	if err != nil {
		return land.Landed{}, nil, err
	}
	to := r.landing()
	o := r.building()
	o.ClusterID, o.Topic, o.TopicID = r.c.ClusterID, l.Topic, uuid.Nil
	if l.TopicID != nil {
		o.TopicID = *l.TopicID
	}
	to.Topic, to.TopicID = o.Topic, o.TopicID
	for range passesMax {
		b := build.New(o)
		b.Add(batch)
		c, err := b.Cut(shape)
		if err != nil {
			return land.Landed{}, nil, err //nolint:wrapcheck // build names the message
		}
		c.Replay = l.ID
		begun := time.Now()
		landed, err := r.w.o.Lander.Land(ctx, to, c, shape)
		if errors.Is(err, land.ErrShapeChanged) {
			shape = landed.Shape
			continue
		}
		if err == nil {
			r.w.o.Meter.Chunk(landed.Written, landed.Duplicates, landed.Letters, time.Since(begun))
		}
		return landed, c, err //nolint:wrapcheck // land names the chunk
	}
	return land.Landed{}, nil, &stop{end: failed("schema_changed", fmt.Sprintf("the table changed its shape %d times during the run", passesMax), "Run the connector again when nobody alters the table.")}
}

// endOfRetry says how a run ends whose letters are all dealt with.
func (r *run) endOfRetry(all retried) store.End {
	e := store.End{Status: "Completed", Code: "ok", Message: fmt.Sprintf("dead letters decoded again: %d landed, %d left out by the filter, %d failed again", all.landed, all.filtered, all.again)}
	if all.again > 0 {
		e.Hint = fmt.Sprintf("Why they failed: SELECT id, reason, message FROM connector.dlq WHERE run_id = '%s' AND status = 'open';", r.c.RunID)
	}
	return e
}

// batchOf makes the batch of one message that a letter came from. Its timestamp is not known any more.
func batchOf(l *store.Letter) (kafka.Batch, error) {
	headers, err := headersOf(l.Headers)
	if err != nil {
		return kafka.Batch{}, fmt.Errorf("dead letter %s: %w", l.ID, err)
	}
	const unknown = -1 // timestamp and leader epoch
	return kafka.Batch{
		Partition: l.Partition, From: l.Offset, Next: l.Offset + 1, Epoch: unknown, Bytes: len(l.Raw),
		Records: []kafka.Record{{Offset: l.Offset, Timestamp: unknown, Key: keyOf(l.Key), Value: l.Raw, Headers: headers}},
	}, nil
}

// keyOf gives a letter's key as the bytes that it was. What is marked as base64 is that only where it stands for bytes that
// are no text: a text that looks like the mark is a text.
func keyOf(key *string) []byte {
	if key == nil {
		return nil
	}
	if text, ok := strings.CutPrefix(*key, "base64:"); ok {
		b, err := base64.StdEncoding.DecodeString(text)
		if err == nil && (!utf8.Valid(b) || strings.IndexByte(string(b), 0) >= 0) {
			return b
		}
	}
	return []byte(*key)
}

// headersOf reads headers as package land stores them: [name, text], [name, {"base64": …}] or [name, null] each.
func headersOf(stored json.RawMessage) ([]kafka.Header, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	var pairs [][2]json.RawMessage
	if err := json.Unmarshal(stored, &pairs); err != nil {
		return nil, fmt.Errorf("reading its headers: %w", err)
	}
	out := make([]kafka.Header, len(pairs))
	for i, p := range pairs {
		var (
			text  *string
			bytes struct {
				Base64 []byte `json:"base64"`
			}
		)
		if err := json.Unmarshal(p[0], &out[i].Key); err != nil {
			return nil, fmt.Errorf("reading its headers: %w", err)
		}
		switch {
		case json.Unmarshal(p[1], &text) == nil && text != nil:
			out[i].Value = []byte(*text)
		case text == nil && json.Unmarshal(p[1], &bytes) == nil:
			out[i].Value = bytes.Base64
		}
	}
	return out, nil
}

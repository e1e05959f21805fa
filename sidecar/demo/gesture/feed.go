package gesture

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/sidecar/demo/corpus"
)

const (
	rateDefault    = 200.0
	rateMax        = 100000 // messages a second
	secondsDefault = 30.0
	secondsMax     = 86400
	// feedTick is how often what has come due is sent; short enough that a reader sees a steady stream.
	feedTick = 5 * time.Millisecond
)

// FeedOptions say what to feed. The messages are the topic's own kind where it is one of the demo's, else partners.
type FeedOptions struct {
	Brokers string  // comma-separated host:port
	Topic   string  // must exist
	Rate    float64 // messages a second, above 0, at most 100,000
	Seconds float64 // how long, above 0, at most 86,400
	From    int     // index of the first message; 0: as many as were ever written to the topic, so that none is told twice
	Out     io.Writer
}

// Fed is what a feeding did.
type Fed struct {
	Count int       // messages that the broker acknowledged
	Until time.Time // when the last one was
}

// Feed produces messages at a steady pace until the time is over or ctx ends, waits until they are acknowledged and says
// how many there were. A broker that cannot keep up makes fewer messages, not a longer feeding. An error comes with what
// was acknowledged before it.
func Feed(ctx context.Context, o FeedOptions) (Fed, error) {
	if !(o.Rate > 0 && o.Rate <= rateMax) || !(o.Seconds > 0 && o.Seconds <= secondsMax) {
		return Fed{}, fmt.Errorf("rate must be above 0 and at most %d messages a second, seconds above 0 and at most %d: not %v and %v",
			rateMax, secondsMax, o.Rate, o.Seconds)
	}
	client, _, ends, err := open(ctx, o.Brokers, o.Topic)
	if err != nil {
		return Fed{}, err
	}
	defer client.Close()
	topic := corpus.Find(o.Topic)
	topic.Partitions = int32(len(ends[o.Topic]))
	if o.From == 0 {
		ends.Each(func(e kadm.ListedOffset) { o.From += int(e.Offset) })
	}
	f := feeder{client: client, topic: topic, next: o.From}
	begun := time.Now()
	f.pace(ctx, o, begun)
	fed, err := f.result()
	if err != nil {
		return fed, fmt.Errorf("feeding topic %s after %d messages: %w", o.Topic, fed.Count, err)
	}
	took := min(time.Since(begun).Seconds(), o.Seconds)
	_, err = fmt.Fprintf(o.Out, "fed %d messages at %.1f/s into %s\n", fed.Count, float64(fed.Count)/took, o.Topic)
	return fed, err
}

// feeder sends messages and counts the acknowledgements, which come from the client's goroutines.
type feeder struct {
	client *kgo.Client
	topic  corpus.Topic
	next   int // index of the next message

	mu   sync.Mutex
	wait sync.WaitGroup
	fed  Fed
	err  error // the first one
}

// pace sends, every tick, what has come due by the clock. Deliveries are not bound to ctx: what was sent when it ends is
// still delivered, and therefore counted.
func (f *feeder) pace(ctx context.Context, o FeedOptions, begun time.Time) {
	limit := time.Duration(o.Seconds * float64(time.Second))
	deliver, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit+answerWait)
	defer cancel()
	tick := time.NewTicker(feedTick)
	defer tick.Stop()
	defer f.wait.Wait()
	for sent := 0; ; {
		elapsed := min(time.Since(begun), limit)
		due := int(math.Round(elapsed.Seconds() * o.Rate))
		for ; sent < due && f.healthy(); sent++ {
			f.send(deliver)
		}
		if elapsed == limit || !f.healthy() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (f *feeder) send(ctx context.Context) {
	m := f.topic.Message(f.next)
	m.At = time.Time{} // stamped when it is sent
	f.next++
	f.wait.Add(1)
	f.client.Produce(ctx, m.Record(f.topic.Name), func(_ *kgo.Record, err error) {
		defer f.wait.Done()
		f.mu.Lock()
		defer f.mu.Unlock()
		if err != nil {
			if f.err == nil {
				f.err = err
			}
			return
		}
		f.fed.Count++
		f.fed.Until = time.Now()
	})
}

func (f *feeder) healthy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err == nil
}

func (f *feeder) result() (Fed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fed, f.err
}

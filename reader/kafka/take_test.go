package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

// TestReplicaThatReadersAreSentTo: an empty answer that names another replica is no proof of emptiness.
func TestReplicaThatReadersAreSentTo(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, numbered(10)...)
	c := b.open(brief)
	topic, spans := planned(t, c)
	b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		resp := emptyAnswer(kreq.(*kmsg.FetchRequest), 10, 10, 0)
		resp.Topics[0].Partitions[0].PreferredReadReplica = 5
		return resp, nil, true
	})
	_, err := c.Drain(deadline(t), topic, spans, func(Batch) error { return nil })
	wantError(t, err, "stalled", "another replica")
}

// TestAnswersThatLie: the wrong topic, no topic, or the partition twice; the run ends, with a code or as not proved.
func TestAnswersThatLie(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(*kmsg.FetchResponse){
		"another topic":         func(r *kmsg.FetchResponse) { r.Topics[0].TopicID = [16]byte{9} },
		"no topic":              func(r *kmsg.FetchResponse) { r.Topics = nil },
		"no partition":          func(r *kmsg.FetchResponse) { r.Topics[0].Partitions = nil },
		"a negative head":       func(r *kmsg.FetchResponse) { r.Topics[0].Partitions[0].HighWatermark = -5 },
		"a batch over and over": func(r *kmsg.FetchResponse) { r.Topics[0].Partitions[0].RecordBatches = good(0, 1).bytes() },
		"a batch that is cut":   func(r *kmsg.FetchResponse) { r.Topics[0].Partitions[0].RecordBatches = good(5, 5).bytes()[:70] },
		"rubbish": func(r *kmsg.FetchResponse) {
			r.Topics[0].Partitions[0].RecordBatches = []byte(strings.Repeat("z", 100))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			b.produce(0, numbered(10)...)
			c := b.open(brief)
			topic, _ := planned(t, c)
			asked := 0
			b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				b.cluster.KeepControl()
				asked++
				resp := emptyAnswer(kreq.(*kmsg.FetchRequest), 10, 10, 0)
				lie(resp)
				return resp, nil, true
			})
			d, err := c.Drain(deadline(t), topic, []plan.Span{{Partition: 0, From: 5, Target: 10, Epoch: 0}}, func(b Batch) error {
				return fmt.Errorf("handed on [%d,%d)", b.From, b.Next)
			})
			var e *Error
			if err == nil && len(d.NotProved) == 0 || err != nil && !errors.As(err, &e) {
				t.Errorf("%v, %+v", err, d)
			}
			if asked > 50 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

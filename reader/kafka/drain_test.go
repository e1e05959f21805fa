package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/reader/plan"
)

func TestReadsAllRecordsOfAllPartitions(t *testing.T) {
	t.Parallel()
	b := setup(t, 3)
	for p := range int32(3) {
		b.produce(p, numbered(250)...)
	}
	c := b.open()
	topic, spans := planned(t, c)
	s := drain(t, c, topic, spans)
	for p := range int32(3) {
		same(t, s.values(p), numbered(250))
	}
	b.untouched()
}

func TestNothingToReadAsksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	c := b.open()
	topic, spans := planned(t, c)
	if s := drain(t, c, topic, spans); s.noRecord != 0 {
		t.Errorf("%d offsets accounted for on an empty topic", s.noRecord)
	}
}

func TestStopsAtTheTargetInsideABatch(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, numbered(100)...)
	c := b.open()
	topic, _ := planned(t, c)
	s := drain(t, c, topic, []plan.Span{{Partition: 0, From: 17, Target: 23, Epoch: -1}})
	same(t, s.values(0), numbered(100)[17:23])
}

func TestTransactionTails(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		fill func(*bench)
		want []string
		gap  int64
	}{
		{"a commit marker", func(b *bench) { b.transaction(kgo.TryCommit, 0, "a") }, []string{"a"}, 1},
		{"an abort marker", func(b *bench) { b.produce(0, "x"); b.transaction(kgo.TryAbort, 0, "a") }, []string{"x"}, 2},
		{"1,000 aborted records", func(b *bench) { b.produce(0, "x"); b.transaction(kgo.TryAbort, 0, numbered(1000)...) }, []string{"x"}, 1001},
		{"committed, aborted, committed", func(b *bench) {
			b.transaction(kgo.TryCommit, 0, "a", "b")
			b.transaction(kgo.TryAbort, 0, "c")
			b.transaction(kgo.TryCommit, 0, "d")
		}, []string{"a", "b", "d"}, 4},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			tc.fill(b)
			c := b.open()
			topic, spans := planned(t, c)
			s := drain(t, c, topic, spans)
			same(t, s.values(0), tc.want)
			if s.noRecord != tc.gap {
				t.Errorf("%d offsets without a record, want %d", s.noRecord, tc.gap)
			}
			b.untouched()
		})
	}
}

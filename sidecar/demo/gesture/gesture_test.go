package gesture_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/corpus"
	"highwater/sidecar/demo/gesture"
)

type bundle struct {
	addr   string
	client *kgo.Client
	admin  *kadm.Client
}

func setup(t *testing.T) bundle {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	client, err := corpus.Connect(b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return bundle{addr: b.Addr(), client: client, admin: kadm.NewClient(client)}
}

func (b bundle) create(t *testing.T, topic string, partitions int32, messages int) {
	t.Helper()
	if _, err := b.admin.CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		m := corpus.Find(topic).Message(i)
		r := m.Record(topic)
		r.Partition = int32(i) % partitions
		if err := b.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func (b bundle) log(t *testing.T, topic string, partition int32) (start, end int64) {
	t.Helper()
	starts, err := b.admin.ListStartOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := b.admin.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := starts.Lookup(topic, partition)
	e, _ := ends.Lookup(topic, partition)
	return s.Offset, e.Offset
}

func TestFeedKeepsItsPaceAndEndsOnTime(t *testing.T) {
	b := setup(t)
	b.create(t, corpus.TopicLive, 1, 0)
	var said strings.Builder
	begun := time.Now()
	fed, err := gesture.Feed(t.Context(), gesture.FeedOptions{Brokers: b.addr, Topic: corpus.TopicLive, Rate: 400, Seconds: 0.5, Out: &said})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("fed for %s, want half a second", took)
	}
	if _, end := b.log(t, corpus.TopicLive, 0); fed.Count != 200 || end != 200 {
		t.Errorf("fed %d and the log ends at %d, want 200 both", fed.Count, end)
	}
	if want := "fed 200 messages at 400.0/s into acme.live\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	if fed.Until.Before(begun) || fed.Until.After(time.Now()) {
		t.Errorf("the last was acknowledged at %s", fed.Until)
	}
}

func TestFeedGoesOnWhereTheTopicEnds(t *testing.T) {
	b := setup(t)
	b.create(t, corpus.TopicTrimmed, 1, 7)
	o := gesture.FeedOptions{Brokers: b.addr, Topic: corpus.TopicTrimmed, Rate: 1000, Seconds: 0.01, Out: &strings.Builder{}}
	fed, err := gesture.Feed(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.value(t, corpus.TopicTrimmed, 7), string(corpus.Find(corpus.TopicTrimmed).Message(7).Value); fed.Count != 10 || got != want {
		t.Errorf("fed %d, first %s, want 10 and %s", fed.Count, got, want)
	}
}

func (b bundle) value(t *testing.T, topic string, offset int64) string {
	t.Helper()
	client, err := corpus.Connect(b.addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(offset)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	fetches := client.PollRecords(ctx, 1)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	return string(fetches.Records()[0].Value)
}

func TestFeedSpreadsKeysOverTheTopicsPartitions(t *testing.T) {
	b := setup(t)
	b.create(t, "some.other", 3, 0)
	fed, err := gesture.Feed(t.Context(), gesture.FeedOptions{Brokers: b.addr, Topic: "some.other", Rate: 10000, Seconds: 0.03, Out: &strings.Builder{}})
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for p := range int32(3) {
		_, end := b.log(t, "some.other", p)
		if end == 0 {
			t.Errorf("partition %d got nothing", p)
		}
		sum += end
	}
	if sum != int64(fed.Count) || fed.Count != 300 {
		t.Errorf("partitions hold %d, fed %d, want 300 both", sum, fed.Count)
	}
}

func TestFeedStoppedEarlyCountsWhatWasDelivered(t *testing.T) {
	b := setup(t)
	b.create(t, corpus.TopicLive, 1, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	fed, err := gesture.Feed(ctx, gesture.FeedOptions{Brokers: b.addr, Topic: corpus.TopicLive, Rate: 1000, Seconds: 3600, Out: &strings.Builder{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, end := b.log(t, corpus.TopicLive, 0); end != int64(fed.Count) || end == 0 {
		t.Errorf("the log ends at %d, fed %d", end, fed.Count)
	}
}

func TestTrimMovesTheLogStart(t *testing.T) {
	b := setup(t)
	b.create(t, corpus.TopicTrimmed, 2, 20)
	var said strings.Builder
	for range 2 { // trimming again changes nothing
		if err := gesture.Trim(t.Context(), gesture.TrimOptions{Brokers: b.addr, Topic: corpus.TopicTrimmed, Before: 6, Out: &said}); err != nil {
			t.Fatal(err)
		}
		for p := range int32(2) {
			if start, end := b.log(t, corpus.TopicTrimmed, p); start != 6 || end != 10 {
				t.Errorf("partition %d is [%d, %d), want [6, 10)", p, start, end)
			}
		}
	}
	for _, want := range []string{
		"acme.partners-trimmed[0]: offsets 0..5 deleted, the log now starts at 6 (high watermark 10)\n",
		"acme.partners-trimmed[1]: nothing to trim, the log starts at offset 6\n",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("said %q, want %q in it", said.String(), want)
		}
	}
}

func TestRefusals(t *testing.T) {
	b := setup(t)
	b.create(t, corpus.TopicTrimmed, 2, 19)
	for _, c := range []struct {
		name, command string
		args          []string
		want          string
	}{
		{"feeding a topic that is not there", "feed", []string{"--topic", "acme.absent"}, "topic acme.absent does not exist"},
		{"trimming a topic that is not there", "trim", []string{"--topic", "acme.absent", "--before", "1"}, "topic acme.absent does not exist"},
		{"trimming above a partition's end", "trim", []string{"--before", "10"}, "acme.partners-trimmed[1] ends at offset 9"},
		{"trimming nowhere", "trim", nil, "before must be"},
		{"a rate of zero", "feed", []string{"--rate", "0"}, "rate must be"},
		{"an endless feed", "feed", []string{"--seconds", "1e9"}, "seconds above 0"},
		{"no number", "feed", []string{"--seconds", "NaN"}, "seconds above 0"},
		{"an unknown flag", "trim", []string{"--after", "1"}, "-after"},
		{"a stray word", "trim", []string{"5500"}, "5500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := map[string]func(context.Context, []string, *strings.Builder) error{
				"feed": func(ctx context.Context, a []string, o *strings.Builder) error { return gesture.FeedCommand(ctx, a, o) },
				"trim": func(ctx context.Context, a []string, o *strings.Builder) error { return gesture.TrimCommand(ctx, a, o) },
			}[c.command]
			var said strings.Builder
			err := command(t.Context(), append([]string{"--brokers", b.addr}, c.args...), &said)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if start, _ := b.log(t, corpus.TopicTrimmed, 0); start != 0 {
		t.Errorf("partition 0 starts at %d, want 0: a refused trim deletes nothing", start)
	}
}

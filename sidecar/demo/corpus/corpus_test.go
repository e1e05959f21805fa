package corpus_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/corpus"
)

// readWait bounds the reading back of one topic.
const readWait = 20 * time.Second

// digests pins every byte of every topic: a change here is a change of what every demo, test and page shows.
var digests = map[string]string{
	corpus.TopicPartners:  "9d76335ca43f752fd875e98b7fe292630d7641c66fd58506592d0a7639229aaa",
	corpus.TopicOrders:    "4d41ebcd5e03da49c749d9f596f9dfa2aeceaafda91f825456e428b0c4d749b5",
	corpus.TopicLive:      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	corpus.TopicDrift:     "1804be734fd68ddc12dcc904fc7e1817aeb714b38dce494edffafb753a7d5373",
	corpus.TopicRaw:       "ad7b14c50ca7dedd140cc2b2e3ef8a66fb09021bf7457205de219602845843d1",
	corpus.TopicReserved:  "ab99351372a655a7a3596ffeca9c6672904090466c1751151b5174a9a5a98ee5",
	corpus.TopicPoison:    "c3fa078331d7f3b508bd1babb470d0b293985d42cd84310c02a6c7c2a450cca2",
	corpus.TopicCompacted: "ed0edf7ced891d9f58eff1311bcc162864362704e9144177d5496b7779f0293c",
	corpus.TopicTrimmed:   "a8c5c341ea5dd5ffa3c69b751c4324cd441a078fcb4750bad5617b106e226894",
	corpus.TopicEmpty:     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	corpus.TopicAbsent:    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
}

func TestEveryTopicIsTheSameBytesAlways(t *testing.T) {
	if got := len(corpus.Topics()); got != len(digests) {
		t.Errorf("%d topics, want %d", got, len(digests))
	}
	for _, topic := range corpus.Topics() {
		sum := topic.Digest()
		if got := hex.EncodeToString(sum[:]); got != digests[topic.Name] {
			t.Errorf("topic %s has digest %s, want %s", topic.Name, got, digests[topic.Name])
		}
	}
}

func TestTheFirstPartnersAreThoseOfTheManual(t *testing.T) {
	want := []string{
		`{"partner_id":1000,"name":"Hydraulique Lyon 1000","city":"Lyon","country":"FR","credit_limit":500,"updated_at":"2026-01-01T00:00:00Z"}`,
		`{"partner_id":1001,"name":"Roulements Bruxelles 1001","city":"Bruxelles","country":"BE","credit_limit":637,"updated_at":"2026-01-01T00:01:00Z"}`,
		`{"partner_id":1002,"name":"Fixations Milano 1002","city":"Milano","country":"IT","credit_limit":774,"updated_at":"2026-01-01T00:02:00Z"}`,
		`{"partner_id":1003,"name":"Pneumatique Porto 1003","city":"Porto","country":"PT","credit_limit":911,"updated_at":"2026-01-01T00:03:00Z"}`,
	}
	for i, w := range want {
		if got := string(corpus.Find(corpus.TopicPartners).Message(i).Value); got != w {
			t.Errorf("partner %d is\n%s, want\n%s", i, got, w)
		}
	}
}

func TestOrdersFallIntoTheSixPartitionsOfTheManual(t *testing.T) {
	var got [corpus.OrderPartitions]int
	topic := corpus.Find(corpus.TopicOrders)
	home := map[string]int32{}
	for i := range topic.Count {
		m := topic.Message(i)
		got[m.Partition]++
		if at, ok := home[string(m.Key)]; ok && at != m.Partition {
			t.Fatalf("partner %s has orders in partitions %d and %d", m.Key, at, m.Partition)
		}
		home[string(m.Key)] = m.Partition
	}
	if want := [...]int{3880, 3770, 3930, 4120, 4190, 4110}; got != want {
		t.Errorf("partitions hold %v, want %v", got, want)
	}
}

func TestShapesOfTheOddTopics(t *testing.T) {
	for _, c := range []struct {
		topic string
		i     int
		want  string // part of the value
	}{
		{corpus.TopicDrift, 1199, `"updated_at":"2026-01-01T19:59:00Z"}`},
		{corpus.TopicDrift, 1200, `"vat_number":"BE000002200","segment":"industry"}`},
		{corpus.TopicRaw, 0, `"Partner Name":"Hydraulique Lyon 1000","credit.limit":500,"MONTANT_€":0.0,"address":{"street":"0 rue de l'Usine","city":"Lyon"},"tags":["erp","partner","batch-0"]}`},
		{corpus.TopicRaw, 499, `"MONTANT_€":748.5,`},
		{corpus.TopicReserved, 0, `{"id":1000,"name":`},
		{corpus.TopicPoison, 990, `{"broken": `},
		{corpus.TopicPoison, 983, `"`},
		{corpus.TopicPoison, 997, `[1997,`},
		{corpus.TopicTrimmed, 4999, `"partner_id":5999,`},
	} {
		value := string(corpus.Find(c.topic).Message(c.i).Value)
		if !strings.Contains(value, c.want) {
			t.Errorf("%s[%d] is %s, want %s in it", c.topic, c.i, value, c.want)
		}
	}
}

func TestExactlyOneInSevenOfThePoisonTopicIsNoObject(t *testing.T) {
	topic, bad := corpus.Find(corpus.TopicPoison), 0
	for i := range topic.Count {
		var object map[string]any
		if json.Unmarshal(topic.Message(i).Value, &object) != nil {
			bad++
		}
	}
	if bad != 143 {
		t.Errorf("%d messages are no object, want 143", bad)
	}
}

func TestEveryOtherTopicHoldsDistinctObjectsAndTombstones(t *testing.T) {
	for _, topic := range corpus.Topics() {
		if topic.Name == corpus.TopicPoison {
			continue
		}
		seen, tombstones := map[string]bool{}, 0
		for i := range topic.Count {
			m := topic.Message(i)
			if m.Value == nil {
				tombstones++
				continue
			}
			if !json.Valid(m.Value) || seen[string(m.Value)] {
				t.Fatalf("%s[%d] is broken or told twice: %s", topic.Name, i, m.Value)
			}
			seen[string(m.Value)] = true
		}
		if want := map[bool]int{true: corpus.Tombstones}[topic.Name == corpus.TopicCompacted]; tombstones != want {
			t.Errorf("%s holds %d tombstones, want %d", topic.Name, tombstones, want)
		}
	}
}

func start(t *testing.T) string {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b.Addr()
}

func TestFillPutsEveryMessageInOrderOnce(t *testing.T) {
	brokers := start(t)
	for range 2 { // filling what is full already changes nothing
		if err := corpus.Fill(t.Context(), brokers); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range corpus.Topics() {
		if topic.Count == 0 {
			continue
		}
		if got := readBack(t, brokers, topic); got != topic.Digest() {
			t.Errorf("topic %s on the broker differs from what was generated", topic.Name)
		}
	}
}

// readBack digests what the broker holds, in the order of generation: partition by partition each message must be the
// next one that the generator gave to that partition.
func readBack(t *testing.T, brokers string, topic corpus.Topic) [32]byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readWait)
	defer cancel()
	client, err := corpus.Connect(brokers, kgo.ConsumeTopics(topic.Name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	held := map[int32][]*kgo.Record{}
	for n := 0; n < topic.Count; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("reading %s after %d messages: %v", topic.Name, n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			held[r.Partition] = append(held[r.Partition], r)
			n++
		})
	}
	digest := corpus.NewDigest()
	for i := range topic.Count {
		want := topic.Message(i)
		r := held[want.Partition][0]
		held[want.Partition] = held[want.Partition][1:]
		if !r.Timestamp.Equal(want.At) {
			t.Fatalf("%s[%d] is stamped %s, want %s", topic.Name, i, r.Timestamp, want.At)
		}
		digest.Add(corpus.Message{Partition: r.Partition, Key: r.Key, Value: r.Value})
	}
	return digest.Sum()
}

func TestFillRefusesATopicThatHoldsSomethingElse(t *testing.T) {
	brokers := start(t)
	admin := adminOf(t, brokers)
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, corpus.TopicRaw); err != nil {
		t.Fatal(err)
	}
	client, err := corpus.Connect(brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: corpus.TopicRaw, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := corpus.Fill(t.Context(), brokers); err == nil || !strings.Contains(err.Error(), corpus.TopicRaw) {
		t.Errorf("error %v, want the topic named", err)
	}
	if held := ends(t, admin, corpus.TopicPartners); held != 0 {
		t.Errorf("%d messages in another topic, want none", held)
	}
}

func TestDropMakesRoomForAnotherFill(t *testing.T) {
	brokers := start(t)
	admin := adminOf(t, brokers)
	if err := corpus.Fill(t.Context(), brokers); err != nil {
		t.Fatal(err)
	}
	if err := corpus.Drop(t.Context(), brokers); err != nil {
		t.Fatal(err)
	}
	listed, err := admin.ListTopics(t.Context())
	if err != nil || len(listed.Names()) != 0 {
		t.Errorf("topics %v, %v, want none", listed.Names(), err)
	}
	if err := corpus.Fill(t.Context(), brokers); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.DeleteTopic(t.Context(), corpus.TopicAbsent); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("deleting the absent topic gives %v, want that it is unknown", err)
	}
}

func adminOf(t *testing.T, brokers string) *kadm.Client {
	t.Helper()
	client, err := corpus.Connect(brokers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

func ends(t *testing.T, admin *kadm.Client, topic string) (sum int64) {
	t.Helper()
	listed, err := admin.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	listed.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}

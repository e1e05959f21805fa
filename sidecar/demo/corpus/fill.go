package corpus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// answerWait bounds what one request may wait for a broker that does not answer.
	answerWait = 15 * time.Second
	// fillWait bounds the filling of all topics together, which takes about a second.
	fillWait = 2 * time.Minute
	// goneWait bounds how long Drop waits until the broker has forgotten a deleted topic, and gonePoll how often it asks.
	goneWait = 15 * time.Second
	gonePoll = 50 * time.Millisecond
)

// keepForever are settings that every topic has: nothing of the demo leaves the broker by itself, though the records'
// timestamps lie in the past.
var keepForever = map[string]string{"retention.ms": "-1", "retention.bytes": "-1"}

// Connect makes a client for a comma-separated list of brokers; it dials when it is first used. It never creates a topic
// by asking for one, and places a record in the partition that the record names. What bounds a delivery is the context
// that the record is produced with: the client's own limit counts from the record's timestamp, which here lies in the past.
func Connect(brokers string, more ...kgo.Opt) (*kgo.Client, error) {
	o := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(brokers, ",")...),
		kgo.ClientID("highwater-demo"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RetryTimeout(answerWait),
	}
	client, err := kgo.NewClient(append(o, more...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to brokers %s: %w", brokers, err)
	}
	return client, nil
}

// Record is the message as a record of a topic.
func (m Message) Record(topic string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: m.Partition, Key: m.Key, Value: m.Value, Timestamp: m.At}
}

// Fill creates the ten topics that exist (replication factor 1) and produces their messages in order, each once. A topic
// that is there already and holds exactly its messages' number is left alone; one that holds something else is an error
// that names it, and nothing is produced to any. When Fill returns nil, every message was acknowledged.
func Fill(ctx context.Context, brokers string) error {
	client, err := Connect(brokers)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, fillWait)
	defer cancel()
	fresh, err := create(ctx, kadm.NewClient(client))
	if err != nil {
		return err
	}
	var sent kgo.FirstErrPromise
	for _, t := range fresh {
		for i := range t.Count {
			client.Produce(ctx, t.Message(i).Record(t.Name), sent.Promise())
		}
	}
	if err := sent.Err(); err != nil {
		return fmt.Errorf("filling the demo topics on %s: %w", brokers, err)
	}
	return nil
}

// create makes the topics and returns those that are to be filled.
func create(ctx context.Context, admin *kadm.Client) ([]Topic, error) {
	var fresh []Topic
	for _, t := range Topics() {
		if t.Absent {
			continue
		}
		_, err := admin.CreateTopic(ctx, t.Partitions, 1, settings(t), t.Name)
		switch {
		case errors.Is(err, kerr.TopicAlreadyExists):
			held, err := holds(ctx, admin, t.Name)
			if err != nil {
				return nil, err
			}
			if held == 0 {
				fresh = append(fresh, t)
			} else if held != int64(t.Count) {
				return nil, fmt.Errorf("topic %s exists and its log has reached %d messages, not %d: delete it, or use another broker", t.Name, held, t.Count)
			}
		case err != nil:
			return nil, fmt.Errorf("creating topic %s: %w", t.Name, err)
		default:
			fresh = append(fresh, t)
		}
	}
	return fresh, nil
}

func settings(t Topic) map[string]*string {
	out := map[string]*string{}
	for _, from := range []map[string]string{keepForever, t.Config} {
		for _, k := range slices.Sorted(maps.Keys(from)) {
			v := from[k]
			out[k] = &v
		}
	}
	return out
}

// holds sums the end offsets of a topic's partitions: how many messages were ever written to it.
func holds(ctx context.Context, admin *kadm.Client, topic string) (int64, error) {
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("asking where topic %s ends: %w", topic, err)
	}
	var sum int64
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum, nil
}

// Drop deletes the demo's topics from a broker and returns when they are gone, so that [Fill] makes them anew; the absent
// one too, where somebody made it. Tests on a broker that outlives them need it.
func Drop(ctx context.Context, brokers string) error {
	client, err := Connect(brokers)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(ctx, goneWait)
	defer cancel()
	tick := time.NewTicker(gonePoll)
	defer tick.Stop()
	for _, t := range Topics() {
		// Deleting is asked for again until the broker knows no such topic, which is the only sure sign that it is gone.
		for {
			_, err := admin.DeleteTopic(ctx, t.Name)
			if errors.Is(err, kerr.UnknownTopicOrPartition) {
				break
			}
			if err != nil {
				return fmt.Errorf("deleting topic %s: %w", t.Name, err)
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("topic %s is still there %s after its deletion: %w", t.Name, goneWait, ctx.Err())
			case <-tick.C:
			}
		}
	}
	return nil
}

// Package gesture holds the two things one does to the demo's broker from outside: feeding a topic while it is read, and
// trimming the beginning of its log. They work on any broker, and they are `highwater feed` and `highwater trim`.
//
// Neither touches a database, and neither creates a topic: a name that the broker does not have is an error.
package gesture

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/corpus"
)

// answerWait bounds what asking, and delivering the last message, may wait for the broker.
const answerWait = 15 * time.Second

// FeedCommand is `highwater feed` with the arguments behind that word. ctx ending ends the feeding; what was sent until
// then is delivered and counted.
func FeedCommand(ctx context.Context, args []string, out io.Writer) error {
	o, err := ParseFeed(args, out)
	if err != nil {
		return err
	}
	_, err = Feed(ctx, o)
	return err
}

// TrimCommand is `highwater trim` with the arguments behind that word.
func TrimCommand(ctx context.Context, args []string, out io.Writer) error {
	o, err := ParseTrim(args, out)
	if err != nil {
		return err
	}
	return Trim(ctx, o)
}

// ParseFeed reads the flags of `highwater feed`; out gets the usage text and later what feeding says.
func ParseFeed(args []string, out io.Writer) (FeedOptions, error) {
	o := FeedOptions{Out: out}
	fs := flags("feed", out, &o.Brokers, &o.Topic, corpus.TopicLive)
	fs.Float64Var(&o.Rate, "rate", rateDefault, fmt.Sprintf("messages a second, up to %d", rateMax))
	fs.Float64Var(&o.Seconds, "seconds", secondsDefault, fmt.Sprintf("how long to feed, in seconds, up to %d", secondsMax))
	fs.IntVar(&o.From, "from", 0, "index of the first message; 0 goes on behind what the topic holds")
	return o, parse(fs, args)
}

// ParseTrim reads the flags of `highwater trim`; out gets the usage text and later what trimming says.
func ParseTrim(args []string, out io.Writer) (TrimOptions, error) {
	o := TrimOptions{Out: out}
	fs := flags("trim", out, &o.Brokers, &o.Topic, corpus.TopicTrimmed)
	fs.Int64Var(&o.Before, "before", 0, "the offset that each partition's log is to start at (required)")
	return o, parse(fs, args)
}

func flags(name string, out io.Writer, brokers, topic *string, topicDefault string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(brokers, "brokers", broker.DefaultAddr, "comma-separated host:port")
	fs.StringVar(topic, "topic", topicDefault, "the topic")
	return fs
}

func parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("reading the flags of %s: %w", fs.Name(), err)
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%s takes no argument such as %q", fs.Name(), fs.Arg(0))
	}
	return nil
}

// open connects and makes sure that the broker answers and has the topic.
func open(ctx context.Context, brokers, topic string) (*kgo.Client, *kadm.Client, kadm.ListedOffsets, error) {
	client, err := corpus.Connect(brokers)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) || err == nil && len(ends) == 0 {
		err = fmt.Errorf("topic %s does not exist on brokers %s", topic, brokers)
	} else if err != nil {
		err = fmt.Errorf("asking brokers %s where topic %s ends: %w", brokers, topic, err)
	}
	if err != nil {
		client.Close()
		return nil, nil, nil, err
	}
	return client, admin, ends, nil
}

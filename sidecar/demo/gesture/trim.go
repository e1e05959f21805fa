package gesture

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TrimOptions say what to trim.
type TrimOptions struct {
	Brokers string // comma-separated host:port
	Topic   string // must exist
	Before  int64  // each partition's log is to start here; above 0
	Out     io.Writer
}

// Trim deletes every record below an offset from every partition of a topic, as retention would in time, and says which
// offsets are gone. A partition that starts there already, or later, is left as it is. Where one partition's log ends
// below the offset nothing is deleted anywhere, and the error names it.
func Trim(ctx context.Context, o TrimOptions) error {
	if o.Before <= 0 {
		return errors.New("before must be the offset that the log is to start at, above 0")
	}
	client, admin, ends, err := open(ctx, o.Brokers, o.Topic)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	starts, err := admin.ListStartOffsets(ctx, o.Topic)
	if err != nil {
		return fmt.Errorf("asking brokers %s where topic %s starts: %w", o.Brokers, o.Topic, err)
	}
	wanted := kadm.Offsets{}
	for _, end := range ends.Offsets().Sorted() {
		if end.At < o.Before {
			return fmt.Errorf("nothing trimmed: %s[%d] ends at offset %d, below %d", o.Topic, end.Partition, end.At, o.Before)
		}
		wanted.Add(kadm.Offset{Topic: o.Topic, Partition: end.Partition, At: o.Before, LeaderEpoch: -1})
	}
	return trim(ctx, admin, o, starts, ends, wanted)
}

func trim(ctx context.Context, admin *kadm.Client, o TrimOptions, starts, ends kadm.ListedOffsets, wanted kadm.Offsets) error {
	for _, w := range wanted.Sorted() {
		start, _ := starts.Lookup(o.Topic, w.Partition)
		end, _ := ends.Lookup(o.Topic, w.Partition)
		if start.Offset >= o.Before {
			if _, err := fmt.Fprintf(o.Out, "%s[%d]: nothing to trim, the log starts at offset %d\n", o.Topic, w.Partition, start.Offset); err != nil {
				return err
			}
			continue
		}
		one := kadm.Offsets{}
		one.Add(w)
		done, err := admin.DeleteRecords(ctx, one)
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			return fmt.Errorf("trimming %s[%d] below offset %d: %w", o.Topic, w.Partition, o.Before, err)
		}
		if _, err := fmt.Fprintf(o.Out, "%s[%d]: offsets %d..%d deleted, the log now starts at %d (high watermark %d)\n",
			o.Topic, w.Partition, start.Offset, o.Before-1, o.Before, end.Offset); err != nil {
			return err
		}
	}
	return nil
}

package kafka

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// legacyMagic is the newest of the two message formats from before Kafka 0.11, which the library reads for us: they have
// no header that covers a range, so a position moves by their own offset.
const legacyMagic = 1

// legacy reads one message of the old formats, or the set of messages inside it, from pos on.
func (d *decoder) legacy(b []byte, pos int64) ([]Record, error) {
	part := kmsg.NewFetchResponseTopicPartition()
	part.RecordBatches = b
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: pos, Topic: d.topic}, &part, d.decompress, nil)
	if got.Err != nil {
		return nil, fmt.Errorf("a message of the old format: %w", got.Err)
	}
	out := make([]Record, 0, len(got.Records))
	for _, r := range got.Records {
		out = append(out, Record{Offset: r.Offset, Timestamp: legacyTime(r), Key: r.Key, Value: r.Value})
	}
	return out, nil
}

func legacyTime(r *kgo.Record) int64 {
	if r.Attrs.TimestampType() < 0 || r.Timestamp.Equal(time.Time{}) {
		return -1
	}
	return r.Timestamp.UnixMilli()
}

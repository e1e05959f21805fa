package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/reader/plan"
)

// BenchmarkDrain reads one million records of 138 bytes from one partition of a fake broker in the same process, which
// pays for part of the time: the figure is a floor.
func BenchmarkDrain(b *testing.B) {
	for _, codec := range []struct {
		name  string
		codec kgo.CompressionCodec
	}{{"plain", kgo.NoCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}} {
		b.Run(codec.name, func(b *testing.B) {
			const records = 1_000_000
			bench := setup(b, 1, kfake.SyntheticFetch(kfake.SyntheticBatch{Records: 7000, RecordBytes: 138, RandomFrac: 0.3, Compression: codec.codec}))
			c := bench.open()
			topic, err := c.Describe(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			n, batches := 0, 0
			for b.Loop() {
				_, err := c.Drain(b.Context(), topic, []plan.Span{{Partition: 0, Target: records, Epoch: -1}}, func(batch Batch) error {
					n += len(batch.Records)
					batches++
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			if n != b.N*records {
				b.Fatalf("%d records, want %d", n, b.N*records)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(batches)/float64(b.N), "batches/op")
		})
	}
}

package plan

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSpansAreSane: whatever a broker says, also nonsense, spans are never negative, never begin below the log start,
// never end above the head, and every stored offset below the log start is in a lost range.
func TestSpansAreSane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := arbitrary(t)
		got, refusal := Decide(in)
		if refusal != nil {
			if refusal.Code == "" || refusal.Message == "" || refusal.Hint == "" || len(got.Spans) != 0 {
				t.Fatalf("refusal without code, message or hint, or with spans: %+v", refusal)
			}
			return
		}
		if len(got.Spans) != len(in.Ends) {
			t.Fatalf("%d spans for %d partitions", len(got.Spans), len(in.Ends))
		}
		stored := map[int32]Stored{}
		for _, s := range in.Stored {
			stored[s.Partition] = s
		}
		for i, s := range got.Spans {
			check(t, s, sound(in.Ends[i]), stored)
		}
	})
}

func check(t *rapid.T, s Span, e Ends, stored map[int32]Stored) {
	if s.From < 0 || s.From > s.Target || s.From < e.LogStartOffset {
		t.Fatalf("span %+v of %+v", s, e)
	}
	if s.Target > max(e.HighWatermark, s.From) {
		t.Fatalf("target %d above the head of %+v", s.Target, e)
	}
	if (s.LostFrom < 0) != (s.LostTo < 0) {
		t.Fatalf("half a lost range: %+v", s)
	}
	was, read := stored[s.Partition]
	switch {
	case !read:
		if s.LostFrom >= 0 {
			t.Fatalf("lost what was never read: %+v", s)
		}
	case s.LostFrom >= 0:
		if s.LostFrom != was.Next || s.LostTo != s.From-1 || s.LostFrom > s.LostTo {
			t.Fatalf("lost range %+v, stored %d, log start %d", s, was.Next, e.LogStartOffset)
		}
	case s.From != was.Next:
		t.Fatalf("position moved from %d to %d without a lost range", was.Next, s.From)
	}
}

func arbitrary(t *rapid.T) Input {
	offset := rapid.OneOf(rapid.Int64Range(-2, 20), rapid.Int64Range(-1<<40, 1<<40))
	n := rapid.IntRange(0, 4).Draw(t, "partitions")
	in := Input{
		Connector:     "c",
		BrokerID:      Identity{Topic: "t"},
		Start:         Start{Kind: rapid.SampledFrom([]StartKind{Earliest, Latest, AtTime}).Draw(t, "start")},
		ReadCommitted: rapid.Bool().Draw(t, "committed"),
		FailOnLost:    rapid.Bool().Draw(t, "fail"),
	}
	for p := range int32(n) {
		in.Ends = append(in.Ends, Ends{
			Partition: p, LeaderEpoch: 1,
			LogStartOffset: offset.Draw(t, "log start"), HighWatermark: offset.Draw(t, "high watermark"),
			LastStableOffset: offset.Draw(t, "last stable"), AtTimeOffset: offset.Draw(t, "at time"),
			EpochEndOffset: offset.Draw(t, "epoch end"),
		})
		if rapid.Bool().Draw(t, "stored") {
			in.Stored = append(in.Stored, Stored{
				Partition: p, Next: max(offset.Draw(t, "next"), 0),
				Epoch: rapid.Int32Range(-1, 1).Draw(t, "epoch"), Sought: rapid.Bool().Draw(t, "sought"),
			})
		}
	}
	return in
}

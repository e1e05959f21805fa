package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	oldID = Identity{Cluster: "c1", Topic: "acme.partners", TopicID: [16]byte{1}}
	newID = Identity{Cluster: "c1", Topic: "acme.partners", TopicID: [16]byte{2}}
)

// ends is a log from start to head with nothing else to say.
func ends(partition int32, start, head int64) Ends {
	return Ends{
		Partition: partition, LeaderEpoch: 4, LogStartOffset: start, HighWatermark: head, LastStableOffset: head,
		AtTimeOffset: -1, EpochEndOffset: -1, EpochEndEpoch: -1,
	}
}

func with(e Ends, change func(*Ends)) Ends {
	change(&e)
	return e
}

func span(partition int32, from, target int64) Span {
	return Span{Partition: partition, From: from, Target: target, Epoch: 4, LostFrom: -1, LostTo: -1}
}

// TestDecide walks every row of spec 3.1.4 and 3.1.5.
func TestDecide(t *testing.T) {
	t.Parallel()
	read := func(partition int32, next int64) Stored { return Stored{Partition: partition, Next: next, Epoch: 4} }
	sought := func(partition int32, next int64) Stored {
		return Stored{Partition: partition, Next: next, Epoch: -1, Sought: true}
	}
	cases := []struct {
		name  string
		in    Input
		spans []Span
		says  []string // each must be part of a finding
		warns int
		code  string // refusal
		words []string
		hint  string
	}{
		{
			name:  "never read, earliest: from the log start",
			in:    Input{Ends: []Ends{ends(0, 0, 10)}},
			spans: []Span{span(0, 0, 10)},
		},
		{
			name:  "never read, log starts above 0: an INFO names what left before the first read",
			in:    Input{Ends: []Ends{ends(0, 7, 10)}},
			spans: []Span{span(0, 7, 10)}, says: []string{"acme.partners[0]: the log starts at 7: offsets 0..6 left"},
		},
		{
			name:  "never read, latest: nothing to read",
			in:    Input{Start: Start{Kind: Latest}, Ends: []Ends{ends(0, 7, 10)}},
			spans: []Span{span(0, 10, 10)},
		},
		{
			name:  "never read, a time: the first offset at or after it",
			in:    Input{Start: Start{Kind: AtTime, At: time.Unix(1, 0)}, Ends: []Ends{with(ends(0, 2, 10), func(e *Ends) { e.AtTimeOffset = 5 })}},
			spans: []Span{span(0, 5, 10)},
		},
		{
			name:  "never read, a time after the last record: at the end",
			in:    Input{Start: Start{Kind: AtTime, At: time.Unix(1, 0)}, Ends: []Ends{ends(0, 2, 10)}},
			spans: []Span{span(0, 10, 10)},
		},
		{
			name:  "never read, a time inside an open transaction: at the target",
			in:    Input{ReadCommitted: true, Start: Start{Kind: AtTime}, Ends: []Ends{with(ends(0, 2, 10), func(e *Ends) { e.AtTimeOffset, e.LastStableOffset = 9, 8 })}},
			spans: []Span{span(0, 8, 8)},
		},
		{
			name:  "stored position inside the log: go on from it",
			in:    Input{Stored: []Stored{read(0, 4)}, Ends: []Ends{ends(0, 0, 10)}},
			spans: []Span{span(0, 4, 10)},
		},
		{
			name:  "stored position at the target: nothing to read",
			in:    Input{Stored: []Stored{read(0, 10)}, Ends: []Ends{ends(0, 0, 10)}},
			spans: []Span{span(0, 10, 10)},
		},
		{
			name:  "stored position on an emptied log: nothing to read",
			in:    Input{Stored: []Stored{read(0, 10)}, Ends: []Ends{ends(0, 10, 10)}},
			spans: []Span{span(0, 10, 10)},
		},
		{
			name:  "stored position below the log start: WARN with the exact range, resume at the log start",
			in:    Input{Stored: []Stored{read(0, 5000)}, Ends: []Ends{ends(0, 5500, 6000)}},
			spans: []Span{{Partition: 0, From: 5500, Target: 6000, Epoch: 4, LostFrom: 5000, LostTo: 5499}},
			says:  []string{"acme.partners[0]: the stored position is offset 5000 but the broker's log now starts at 5500: offsets 5000..5499 left"}, warns: 1,
		},
		{
			name:  "everything unread was removed: lost up to the log start, nothing left to read",
			in:    Input{Stored: []Stored{read(0, 5)}, Ends: []Ends{ends(0, 10, 10)}},
			spans: []Span{{Partition: 0, From: 10, Target: 10, Epoch: 4, LostFrom: 5, LostTo: 9}}, warns: 1,
		},
		{
			name: "on_lost fail: refused before reading",
			in:   Input{FailOnLost: true, Stored: []Stored{read(0, 5)}, Ends: []Ends{ends(0, 10, 12)}},
			code: "offsets_expired", words: []string{"5..9", "10"}, hint: "SELECT connector.seek('partners', 0, 10);",
		},
		{
			name: "the stored epoch ends below the position: truncated, both offsets named",
			in:   Input{Stored: []Stored{read(0, 15)}, Ends: []Ends{with(ends(0, 0, 20), func(e *Ends) { e.EpochEndOffset, e.EpochEndEpoch = 12, 4 })}},
			code: "log_truncated", words: []string{"15", "12"}, hint: "SELECT connector.seek('partners', 0, 12);",
		},
		{
			name:  "the stored epoch ends at the position: the same history",
			in:    Input{Stored: []Stored{read(0, 15)}, Ends: []Ends{with(ends(0, 0, 20), func(e *Ends) { e.EpochEndOffset, e.EpochEndEpoch = 15, 4 })}},
			spans: []Span{span(0, 15, 20)},
		},
		{
			name: "the broker's epoch is below the stored one: another log",
			in:   Input{Stored: []Stored{{Partition: 0, Next: 15, Epoch: 7}}, Ends: []Ends{ends(0, 0, 20)}},
			code: "log_truncated", words: []string{"epoch 7", "epoch 4", "15"}, hint: "SELECT connector.reset_cursor('partners');",
		},
		{
			name:  "a broker that tells no epochs: not judged by them",
			in:    Input{Stored: []Stored{{Partition: 0, Next: 15, Epoch: 7}}, Ends: []Ends{with(ends(0, 0, 20), func(e *Ends) { e.LeaderEpoch = -1 })}},
			spans: []Span{{Partition: 0, From: 15, Target: 20, Epoch: -1, LostFrom: -1, LostTo: -1}},
		},
		{
			name:  "no stored epoch: truncation inside the log cannot be judged",
			in:    Input{Stored: []Stored{{Partition: 0, Next: 15, Epoch: -1}}, Ends: []Ends{with(ends(0, 0, 20), func(e *Ends) { e.EpochEndOffset = 12 })}},
			spans: []Span{span(0, 15, 20)},
		},
		{
			name: "stored position above the head: truncated, both offsets named",
			in:   Input{Stored: []Stored{read(0, 50)}, Ends: []Ends{ends(0, 0, 10)}},
			code: "log_truncated", words: []string{"50", "10"}, hint: "SELECT connector.reset_cursor('partners');",
		},
		{
			name: "sought above the head: refused, both numbers named",
			in:   Input{Stored: []Stored{sought(0, 50)}, Ends: []Ends{ends(0, 0, 10)}},
			code: "log_truncated", words: []string{"50", "was sought", "10"},
		},
		{
			name: "sought below the log start: refused, not a lost range",
			in:   Input{Stored: []Stored{sought(0, 3)}, Ends: []Ends{ends(0, 5, 10)}},
			code: "offsets_expired", words: []string{"offset 3 was sought", "starts at 5"}, hint: "SELECT connector.seek('partners', 0, 5);",
		},
		{
			name:  "sought inside the log: taken, whatever the epochs say",
			in:    Input{Stored: []Stored{sought(0, 5)}, Ends: []Ends{with(ends(0, 5, 10), func(e *Ends) { e.EpochEndOffset = 4 })}},
			spans: []Span{span(0, 5, 10)},
		},
		{
			name: "sought in a partition the topic does not have",
			in:   Input{Stored: []Stored{read(0, 1), sought(7, 3)}, Ends: []Ends{ends(0, 0, 10), ends(1, 0, 10)}},
			code: "topic_missing", words: []string{"partition 7", "offset 3", "has 2"}, hint: "SELECT connector.reset_cursor('partners');",
		},
		{
			name: "stored in a partition the topic does not have any more: another topic",
			in:   Input{Stored: []Stored{read(0, 1), read(1, 3)}, Ends: []Ends{ends(0, 0, 10)}},
			code: "topic_recreated", words: []string{"partition 1"}, hint: "SELECT connector.reset_cursor('partners');",
		},
		{
			name: "another topic id: recreated",
			in:   Input{StoredID: oldID, BrokerID: newID, Stored: []Stored{read(0, 4)}, Ends: []Ends{ends(0, 0, 10)}},
			code: "topic_recreated", words: []string{"acme.partners", "01000000-", "02000000-"}, hint: "SELECT connector.reset_cursor('partners');",
		},
		{
			name: "another cluster behind the same address",
			in:   Input{StoredID: Identity{Cluster: "c0", Topic: "acme.partners", TopicID: [16]byte{1}}, Stored: []Stored{read(0, 4)}, Ends: []Ends{ends(0, 0, 10)}},
			code: "cluster_changed", words: []string{"c0", "c1"}, hint: "SELECT connector.reset_cursor('partners');",
		},
		{
			name: "another topic name in the manifest",
			in:   Input{StoredID: Identity{Cluster: "c1", Topic: "acme.old"}, Stored: []Stored{read(0, 4)}, Ends: []Ends{ends(0, 0, 10)}},
			code: "topic_recreated", words: []string{"acme.old", "acme.partners"}, hint: "SELECT connector.reset_cursor('partners');",
		},
		{
			name: "a time was sought: no stored positions, the identity is judged all the same",
			in:   Input{StoredID: oldID, BrokerID: newID, Start: Start{Kind: AtTime}, Ends: []Ends{ends(0, 0, 10)}},
			code: "topic_recreated",
		},
		{
			name:  "a broker without ids: one WARN, then names only",
			in:    Input{BrokerID: Identity{Topic: "acme.partners"}, Ends: []Ends{ends(0, 0, 10), ends(1, 0, 10)}},
			spans: []Span{span(0, 0, 10), span(1, 0, 10)}, says: []string{"no topic ids"}, warns: 1,
		},
		{
			name: "a broker without ids, read before: no WARN again",
			in: Input{
				BrokerID: Identity{Topic: "acme.partners"}, StoredID: Identity{Topic: "acme.partners"},
				Stored: []Stored{read(0, 4)}, Ends: []Ends{ends(0, 0, 10)},
			},
			spans: []Span{span(0, 4, 10)},
		},
		{
			name: "the broker lost its ids: WARN, go on by name",
			in: Input{
				BrokerID: Identity{Topic: "acme.partners"}, StoredID: oldID,
				Stored: []Stored{read(0, 4)}, Ends: []Ends{ends(0, 0, 10)},
			},
			spans: []Span{span(0, 4, 10)}, warns: 1,
		},
		{
			name:  "the topic has grown: new partitions from their beginning, whatever start_position says",
			in:    Input{Start: Start{Kind: Latest}, Stored: []Stored{read(0, 5)}, Ends: []Ends{ends(0, 0, 5), ends(1, 0, 5), ends(2, 2, 5)}},
			spans: []Span{span(0, 5, 5), span(1, 0, 5), span(2, 2, 5)}, says: []string{"acme.partners[1] is new", "offsets 0..1 left"},
		},
		{
			name:  "read_committed: the target is the last stable offset, and an open transaction is told",
			in:    Input{ReadCommitted: true, Stored: []Stored{read(0, 5)}, Ends: []Ends{with(ends(0, 0, 12), func(e *Ends) { e.LastStableOffset = 9 })}},
			spans: []Span{span(0, 5, 9)}, says: []string{"a transaction is open at offset 9: the 3 offsets"},
		},
		{
			name:  "read_uncommitted: the target is the high watermark",
			in:    Input{Stored: []Stored{read(0, 5)}, Ends: []Ends{with(ends(0, 0, 12), func(e *Ends) { e.LastStableOffset = 9 })}},
			spans: []Span{span(0, 5, 12)},
		},
		{
			name:  "position between the last stable offset and the head: nothing to read, no truncation",
			in:    Input{ReadCommitted: true, Stored: []Stored{read(0, 11)}, Ends: []Ends{with(ends(0, 0, 12), func(e *Ends) { e.LastStableOffset = 9 })}},
			spans: []Span{span(0, 11, 11)},
		},
		{
			name: "several partitions refused: three named, the rest counted, truncation before expiry",
			in: Input{
				FailOnLost: true,
				Stored:     []Stored{read(0, 1), read(1, 50), read(2, 51), read(3, 52), read(4, 53)},
				Ends:       []Ends{ends(0, 5, 10), ends(1, 0, 10), ends(2, 0, 10), ends(3, 0, 10), ends(4, 0, 10)},
			},
			code: "log_truncated", words: []string{"[1]", "[2]", "[3]", "and 1 more partitions"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := c.in
			in.Connector = "partners"
			if in.BrokerID == (Identity{}) {
				in.BrokerID = oldID
			}
			got, refusal := Decide(in)
			if c.code != "" {
				wantRefusal(t, refusal, c.code, c.words, c.hint)
				return
			}
			if refusal != nil {
				t.Fatalf("refused %s: %s", refusal.Code, refusal.Message)
			}
			if !reflect.DeepEqual(got.Spans, c.spans) {
				t.Errorf("spans %+v, want %+v", got.Spans, c.spans)
			}
			wantFindings(t, got.Findings, c.says, c.warns)
		})
	}
}

func wantRefusal(t *testing.T, got *Refusal, code string, words []string, hint string) {
	t.Helper()
	if got == nil {
		t.Fatalf("no refusal, want %s", code)
	}
	if got.Code != code {
		t.Errorf("code %s (%s), want %s", got.Code, got.Message, code)
	}
	for _, w := range words {
		if !strings.Contains(got.Error(), w) {
			t.Errorf("message %q lacks %q", got.Message, w)
		}
	}
	if !strings.Contains(got.Hint, hint) || got.Hint == "" {
		t.Errorf("hint %q, want %q in it", got.Hint, hint)
	}
}

func wantFindings(t *testing.T, got []Finding, says []string, warns int) {
	t.Helper()
	for _, want := range says {
		if !slices.ContainsFunc(got, func(f Finding) bool { return strings.Contains(f.Message, want) }) {
			t.Errorf("no finding says %q: %+v", want, got)
		}
	}
	n := 0
	for _, f := range got {
		if f.Warn {
			n++
		}
	}
	if n != warns {
		t.Errorf("%d warnings, want %d: %+v", n, warns, got)
	}
}

func TestLostAndExpiredAreToldForEveryPartitionButLoggedForFew(t *testing.T) {
	t.Parallel()
	var in Input
	in.BrokerID = oldID
	for p := range int32(100) {
		in.Stored = append(in.Stored, Stored{Partition: p, Next: 1, Epoch: -1})
		in.Ends = append(in.Ends, ends(p, 5, 9))
	}
	got, refusal := Decide(in)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if len(got.Lost) != 100 {
		t.Errorf("%d lost ranges, want 100", len(got.Lost))
	}
	if len(got.Findings) > saidPerKind+1 {
		t.Errorf("%d findings for the log, want at most %d", len(got.Findings), saidPerKind+1)
	}
	in.Stored = nil
	if got, _ = Decide(in); len(got.Expired) != 100 || len(got.Lost) != 0 {
		t.Errorf("%d expired and %d lost, want 100 and 0", len(got.Expired), len(got.Lost))
	}
}

func TestHintQuotesTheConnectorsName(t *testing.T) {
	t.Parallel()
	_, refusal := Decide(Input{Connector: "o'brien", BrokerID: oldID, Stored: []Stored{{Next: 9}}, Ends: []Ends{ends(0, 0, 1)}})
	if refusal == nil || !strings.Contains(refusal.Hint, "reset_cursor('o''brien')") {
		t.Errorf("refusal %+v", refusal)
	}
}

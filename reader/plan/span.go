package plan

import "fmt"

// partition decides one partition: it appends a span, or a reason to refuse.
func (d *decision) partition(e Ends) {
	target := e.HighWatermark
	if d.in.ReadCommitted {
		target = e.LastStableOffset
		d.sayOpen(e)
	}
	span := Span{Partition: e.Partition, Target: target, Epoch: e.LeaderEpoch, LostFrom: -1, LostTo: -1}
	if s, ok := d.stored[e.Partition]; ok {
		if d.resume(&span, s, e) {
			d.spans = append(d.spans, span)
		}
		return
	}
	span.From = d.begin(e, target)
	d.spans = append(d.spans, span)
}

// begin is the first offset of a partition that has no stored position.
func (d *decision) begin(e Ends, target int64) int64 {
	if len(d.in.Stored) > 0 {
		// The topic has grown since it was read: whatever start_position said, these records are new to the table.
		d.rest = append(d.rest, Finding{Message: fmt.Sprintf("%s is new: it is read from its beginning, offset %d", d.name(e.Partition), e.LogStartOffset)})
		d.sayExpired(e)
		return e.LogStartOffset
	}
	switch d.in.Start.Kind {
	case Latest:
		return target
	case AtTime:
		if e.AtTimeOffset < 0 {
			return target
		}
		return min(max(e.AtTimeOffset, e.LogStartOffset), target)
	case Earliest:
	}
	d.sayExpired(e)
	return e.LogStartOffset
}

// resume judges a stored position against the log and sets the span to go on from it. It reports false where the
// partition must not be read; the order matters: what says "another log" is asked before what says "gone".
func (d *decision) resume(span *Span, s Stored, e Ends) bool {
	switch {
	case s.Sought && s.Next > e.HighWatermark:
		d.refuse(codeLogTruncated, d.aboveHead(s, e), "Run "+d.seek(s.Partition, e.HighWatermark)+" to begin with what comes next.")
		return false
	case s.Next > e.HighWatermark:
		d.refuse(codeLogTruncated, d.aboveHead(s, e), d.resetHint("to read the log as it is now from its start_position"))
		return false
	case s.Sought && s.Next < e.LogStartOffset:
		d.refuse(codeOffsetsExpired,
			fmt.Sprintf("%s: offset %d was sought, but the broker's log starts at %d", d.name(s.Partition), s.Next, e.LogStartOffset),
			"Run "+d.seek(s.Partition, e.LogStartOffset)+" to begin at the oldest offset that is left.")
		return false
	case !s.Sought && s.Epoch >= 0 && e.EpochEndOffset >= 0 && e.EpochEndOffset < s.Next:
		d.refuse(codeLogTruncated, d.diverged(s, e), "Run "+d.seek(s.Partition, e.EpochEndOffset)+
			" to go on where the histories part (what was landed beyond stays), or "+d.reset()+" to read all of it again.")
		return false
	case !s.Sought && e.LeaderEpoch >= 0 && s.Epoch > e.LeaderEpoch:
		d.refuse(codeLogTruncated, fmt.Sprintf("%s: the stored position is offset %d of leader epoch %d, but the broker's log is at leader epoch %d: epochs never go back, so it is another log",
			d.name(s.Partition), s.Next, s.Epoch, e.LeaderEpoch), d.resetHint("to read the log as it is now from its start_position"))
		return false
	case s.Next < e.LogStartOffset:
		return d.lose(span, s, e)
	}
	// A position above the target is no fault where the target is the last stable offset: the records between were read
	// before isolation was changed, or belong to a transaction that is open again. There is just nothing to read.
	span.From, span.Target = s.Next, max(span.Target, s.Next)
	return true
}

// lose handles a position below the log start: retention was faster than the reader.
func (d *decision) lose(span *Span, s Stored, e Ends) bool {
	from, to := s.Next, e.LogStartOffset-1
	what := fmt.Sprintf("%s: the stored position is offset %d but the broker's log now starts at %d: offsets %d..%d left the log before they were read",
		d.name(s.Partition), s.Next, e.LogStartOffset, from, to)
	if d.in.FailOnLost {
		d.refuse(codeOffsetsExpired, what+" (on_lost is fail: nothing was read)",
			"Run "+d.seek(s.Partition, e.LogStartOffset)+" to go on without them, or set on_lost to partial.")
		return false
	}
	d.lost.add("%s; reading goes on at %d", what, e.LogStartOffset)
	span.From, span.Target = e.LogStartOffset, max(span.Target, e.LogStartOffset)
	span.LostFrom, span.LostTo = from, to
	return true
}

func (d *decision) aboveHead(s Stored, e Ends) string {
	if s.Sought {
		return fmt.Sprintf("%s: offset %d was sought, but the broker's log ends at %d", d.name(s.Partition), s.Next, e.HighWatermark)
	}
	return fmt.Sprintf("%s: the stored position is offset %d but the broker's log ends at %d: it was truncated, or is another log",
		d.name(s.Partition), s.Next, e.HighWatermark)
}

func (d *decision) diverged(s Stored, e Ends) string {
	return fmt.Sprintf("%s: the stored position is offset %d of leader epoch %d, but in the broker's log that epoch ends at offset %d: "+
		"the log was truncated there and written again, records %d..%d of the table belong to a history that is gone",
		d.name(s.Partition), s.Next, s.Epoch, e.EpochEndOffset, e.EpochEndOffset, s.Next-1)
}

func (d *decision) sayExpired(e Ends) {
	if e.LogStartOffset > 0 {
		d.expired.add("%s: the log starts at %d: offsets 0..%d left it before the first read", d.name(e.Partition), e.LogStartOffset, e.LogStartOffset-1)
	}
}

func (d *decision) sayOpen(e Ends) {
	if e.LastStableOffset < e.HighWatermark {
		d.open.add("%s: a transaction is open at offset %d: the %d offsets from there to the high watermark %d wait for it and belong to a later run",
			d.name(e.Partition), e.LastStableOffset, e.HighWatermark-e.LastStableOffset, e.HighWatermark)
	}
}

func (d *decision) refuse(code, why, hint string) {
	d.refusals = append(d.refusals, refused{code: code, why: why, hint: hint})
}

// name writes a partition as topic[partition].
func (d *decision) name(partition int32) string {
	return fmt.Sprintf("%s[%d]", d.in.BrokerID.Topic, partition)
}

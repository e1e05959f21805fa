package plan

import (
	"fmt"
	"strings"
)

// Limits of what a run says about its partitions: a topic may have 10,000 of them, a log line is read by a person.
const (
	saidPerKind   = 20 // findings of one kind in the log
	namedInAnswer = 3  // partitions named in a refusal
)

// Codes out of the closed list of spec 1.3.
const (
	codeOffsetsExpired = "offsets_expired"
	codeLogTruncated   = "log_truncated"
	codeTopicRecreated = "topic_recreated"
	codeTopicMissing   = "topic_missing"
	codeClusterChanged = "cluster_changed"
)

// Decide turns stored positions and the broker's answers into the spans of a run, in partition order, or into a refusal
// with nothing to read. It is pure: equal inputs give equal answers.
//
// A partition without a stored position is read from Start where the connector has no position at all, and from its
// beginning where it has some (the topic has grown). A lost range is a finding and resumes at the log start, or a
// refusal under FailOnLost; everything that says "this is another log" is always a refusal.
func Decide(in Input) (Plan, *Refusal) {
	d := decision{in: in, stored: make(map[int32]Stored, len(in.Stored))}
	for _, s := range in.Stored {
		d.stored[s.Partition] = s
	}
	if r := d.identity(); r != nil {
		return Plan{}, r
	}
	if r := d.strangers(); r != nil {
		return Plan{}, r
	}
	for _, e := range in.Ends {
		d.partition(sound(e))
	}
	if r := d.refusal(); r != nil {
		return Plan{}, r
	}
	return d.plan(), nil
}

// decision collects what is found out partition by partition.
type decision struct {
	in     Input
	stored map[int32]Stored

	spans    []Span
	expired  findings // left before the first read
	lost     findings // left before they were read
	open     findings // held back by an open transaction
	rest     []Finding
	refusals []refused
}

// refused is one partition's reason not to start.
type refused struct {
	code, why, hint string
}

// findings are sentences of one kind.
type findings struct {
	warn  bool
	lines []string
}

func (f *findings) add(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

func (f *findings) said() []Finding {
	var out []Finding
	for i, line := range f.lines {
		if i == saidPerKind {
			out = append(out, Finding{Warn: f.warn, Message: fmt.Sprintf("… and the same on %d more partitions", len(f.lines)-i)})
			break
		}
		out = append(out, Finding{Warn: f.warn, Message: line})
	}
	return out
}

func (d *decision) plan() Plan {
	d.lost.warn = true
	p := Plan{Spans: d.spans, Lost: d.lost.lines, Expired: d.expired.lines}
	p.Findings = append(p.Findings, d.lost.said()...)
	p.Findings = append(p.Findings, d.expired.said()...)
	p.Findings = append(p.Findings, d.open.said()...)
	p.Findings = append(p.Findings, d.rest...)
	return p
}

// refusal joins the partitions' refusals of the gravest kind: those that say "another log" before those that say "gone".
func (d *decision) refusal() *Refusal {
	for _, code := range []string{codeLogTruncated, codeOffsetsExpired} {
		var whys []string
		var hint string
		for _, r := range d.refusals {
			if r.code != code {
				continue
			}
			if hint == "" {
				hint = r.hint
			}
			whys = append(whys, r.why)
		}
		if len(whys) == 0 {
			continue
		}
		message := strings.Join(whys[:min(len(whys), namedInAnswer)], "; ")
		if more := len(whys) - namedInAnswer; more > 0 {
			message += fmt.Sprintf("; and %d more partitions", more)
		}
		return &Refusal{Code: code, Message: message, Hint: hint}
	}
	return nil
}

// sound makes a broker's answer consistent before arithmetic is done on it: offsets are not negative, and log start ≤
// last stable offset ≤ high watermark. Brokers measure them one after the other, so a busy log can answer out of order.
func sound(e Ends) Ends {
	e.LogStartOffset = max(e.LogStartOffset, 0)
	e.HighWatermark = max(e.HighWatermark, e.LogStartOffset)
	if e.LastStableOffset < 0 {
		e.LastStableOffset = e.HighWatermark
	}
	e.LastStableOffset = min(max(e.LastStableOffset, e.LogStartOffset), e.HighWatermark)
	return e
}

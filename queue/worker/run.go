package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"highwater/reader/kafka"
	"highwater/reader/plan"
	"highwater/sql/store"
)

// run is one run in this sidecar's hands, from its claim to its end.
type run struct {
	w           *Worker
	c           store.Claim
	m           manifest
	log         *slog.Logger
	mask        *mask
	begun       time.Time
	reading     context.Context // ends when the run is to stop; its cause says why
	stopReading context.CancelCauseFunc

	topic     kafka.Topic
	spans     []plan.Span
	proved    map[int32]bool   // partitions whose target was reached by proof of emptiness
	lost      []string         // sentences about ranges the broker had deleted
	expired   []string         // sentences about offsets that had left the broker before the first read
	notProved map[int32]string // a sentence for each partition whose end could not be proved
	letters   int64
	poison    int // chunks in a row without one good message
}

// do carries the run to its end, or to an error that says why not.
func (r *run) do(ctx context.Context) (store.End, error) {
	if err := r.prepare(); err != nil {
		return store.End{}, err
	}
	again, err := r.w.o.Store.IsRetry(ctx, r.c.RunID)
	if err != nil {
		end := failed("database_error", safe(err.Error()), "Run the connector again.")
		end.Retryable = true
		return store.End{}, &stop{end: end, err: err}
	}
	if again {
		return r.retry(ctx)
	}
	client, err := r.connect(ctx)
	if err != nil {
		return store.End{}, err
	}
	defer client.Close()
	if err := r.plan(ctx, client); err != nil {
		if why := stopped(r.reading); why != nil {
			return store.End{}, why
		}
		return store.End{}, err
	}
	if err := r.drain(ctx, client); err != nil {
		return store.End{}, err
	}
	r.w.o.Failpoint("run-drained")
	return r.endOfPass(), nil
}

func (r *run) prepare() error {
	m, err := parseManifest(r.c.Spec)
	if err != nil {
		return err
	}
	if m.Read != "catch_up" {
		return &stop{end: failed("internal", fmt.Sprintf("read: %s is not carried out by this version", m.Read), "Use read: catch_up.")}
	}
	r.m, r.proved, r.notProved = m, map[int32]bool{}, map[int32]string{}
	return nil
}

func (r *run) connect(ctx context.Context) (*kafka.Client, error) {
	secrets, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	var credentials []string
	secrets.credentials = &credentials
	o, err := r.m.connection(secrets)
	r.mask.hide(credentials)
	if err != nil {
		return nil, err
	}
	o.Connector, o.Logger, o.BufferBytes = r.c.Connector, r.log, r.w.o.BufferBytes
	client, err := r.w.o.Kafka(o)
	if err != nil {
		return nil, fmt.Errorf("opening the broker connection: %w", err)
	}
	return client, nil
}

// plan measures the topic's end once and stores it as the run's targets. A run that is being taken over keeps the
// targets it has.
func (r *run) plan(ctx context.Context, client *kafka.Client) error {
	topic, err := client.Describe(r.reading)
	if err != nil {
		return r.absent(err)
	}
	r.topic = topic
	start, err := r.m.start()
	if err != nil {
		return err
	}
	stored, err := r.stored(ctx)
	if err != nil {
		return err
	}
	if r.c.SeekTo != nil { // the sought time takes the place of every stored position
		start, stored = plan.Start{Kind: plan.AtTime, At: *r.c.SeekTo}, nil
	}
	measured := time.Now()
	ends, err := client.Measure(r.reading, topic, stored, start)
	if err != nil {
		return err //nolint:wrapcheck // the reader names the topic
	}
	r.w.o.Failpoint("run-measured")
	p, refusal := plan.Decide(plan.Input{
		Connector: r.c.Connector, Stored: stored, StoredID: r.storedID(stored), BrokerID: topic.ID, Ends: ends, Start: start,
		ReadCommitted: r.m.Isolation == "read_committed", FailOnLost: r.m.OnLost == "fail",
	})
	for _, f := range p.Findings {
		r.sayFinding(ctx, f)
	}
	if refusal != nil {
		return refusal //nolint:wrapcheck // the plan names topic and partition
	}
	r.lost, r.expired = p.Lost, p.Expired
	if r.c.Planned {
		return r.resume(ctx, p)
	}
	r.spans = p.Spans
	if err := r.w.o.Store.SavePlan(ctx, r.c.RunID, r.c.Fence, storedPlan(topic.ID, measured, p.Spans, ends)); err != nil {
		return fmt.Errorf("planning: %w", err)
	}
	r.w.o.Failpoint("run-planned")
	r.say(ctx, "INFO", "target: partition offsets ["+targets(p.Spans)+"]")
	return nil
}

// absent tells a first read of a topic that the broker does not have from one that was read before.
func (r *run) absent(err error) error {
	var ke *kafka.Error
	if !errors.As(err, &ke) || ke.Code != "topic_missing" {
		return err
	}
	if r.c.Topic == "" {
		return &stop{err: err, end: failed("topic_missing", ke.Message+"; this connector has never read it, so the name may be misspelt",
			"Check spec.topic, or create the topic on the broker: a run never creates one.")}
	}
	return &stop{err: err, end: failed("topic_missing", ke.Message+fmt.Sprintf("; this connector has read topic '%s' before, so it was deleted or renamed on the broker, or the manifest was edited", r.c.Topic),
		fmt.Sprintf("If the topic is gone for good and comes back anew: SELECT connector.reset_cursor('%s');", strings.ReplaceAll(r.c.Connector, "'", "''")))}
}

func (r *run) stored(ctx context.Context) ([]plan.Stored, error) {
	rows, err := r.w.o.Store.Positions(ctx, r.c.ConnectorID)
	if err != nil {
		return nil, err //nolint:wrapcheck // store names the call
	}
	out := make([]plan.Stored, len(rows))
	for i, p := range rows {
		out[i] = plan.Stored{Partition: p.Partition, Next: p.NextOffset, Epoch: p.LeaderEpoch, Sought: p.Sought}
	}
	return out, nil
}

func (r *run) storedID(stored []plan.Stored) plan.Identity {
	if len(stored) == 0 {
		return plan.Identity{}
	}
	return plan.Identity{Cluster: r.c.ClusterID, Topic: r.c.Topic, TopicID: [16]byte(r.c.TopicID)}
}

// resume goes on with a run that had begun elsewhere: from the stored positions to the targets it planned then.
// Whatever was lost meanwhile ends it, because its account has no room for a gap; the next run names the range.
func (r *run) resume(ctx context.Context, p plan.Plan) error {
	planned, err := r.w.o.Store.Planned(ctx, r.c.RunID)
	if err != nil {
		return err //nolint:wrapcheck // store names the call
	}
	if len(p.Lost) > 0 {
		return &stop{end: partial("offsets_expired", strings.Join(p.Lost, "; "), "The next run reads on from the log start.")}
	}
	now := make(map[int32]plan.Span, len(p.Spans))
	for _, s := range p.Spans {
		now[s.Partition] = s
	}
	for _, q := range planned {
		s, ok := now[q.Partition]
		if !ok || s.Target < q.Target && s.From < q.Target {
			return &stop{end: failed("target_lost", fmt.Sprintf("%s[%d]: the run was to read to offset %d, and the log now ends at %d", r.m.Topic, q.Partition, q.Target, s.Target),
				"The log was cut short on the broker; run the connector again.")}
		}
		r.spans = append(r.spans, plan.Span{Partition: q.Partition, From: q.Next, Target: q.Target, Epoch: s.Epoch, LostFrom: -1, LostTo: -1})
		if q.LostFrom >= 0 {
			r.lost = append(r.lost, fmt.Sprintf("%s[%d]: offsets %d..%d were no longer on the broker and can never be read", r.m.Topic, q.Partition, q.LostFrom, q.LostTo))
		}
	}
	r.say(ctx, "INFO", "the run was taken over; target: partition offsets ["+targets(r.spans)+"]")
	return nil
}

func storedPlan(id plan.Identity, measured time.Time, spans []plan.Span, ends []plan.Ends) store.Plan {
	out := store.Plan{ClusterID: id.Cluster, Topic: id.Topic, MeasuredAt: measured}
	if id.TopicID != [16]byte{} {
		u := uuid.UUID(id.TopicID)
		out.TopicID = &u
	}
	at := make(map[int32]plan.Ends, len(ends))
	for _, e := range ends {
		at[e.Partition] = e
	}
	for _, s := range spans {
		e := at[s.Partition]
		p := store.PlanPartition{Partition: s.Partition, Start: s.From, Target: s.Target, Epoch: s.Epoch, LogStart: e.LogStartOffset, HighWatermark: e.HighWatermark}
		if s.LostFrom >= 0 {
			p.LostFrom, p.LostTo = &s.LostFrom, &s.LostTo
		}
		out.Partitions = append(out.Partitions, p)
	}
	return out
}

// targetsShown bounds how many partitions one log line lists.
const targetsShown = 100

func targets(spans []plan.Span) string {
	var b strings.Builder
	for i, s := range spans {
		if i == targetsShown {
			fmt.Fprintf(&b, ", and %d more", len(spans)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d: %d", s.Partition, s.Target)
	}
	return b.String()
}

func (r *run) sayFinding(ctx context.Context, f plan.Finding) {
	level := "INFO"
	if f.Warn {
		level = "WARN"
	}
	r.say(ctx, level, f.Message)
}

// say puts a sentence into connector.log and the sidecar's own log. A database that cannot take it is no reason to stop.
func (r *run) say(ctx context.Context, level, message string) {
	message = r.mask.text(safe(message))
	r.log.Log(ctx, map[string]slog.Level{"INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError}[level], message)
	if err := r.w.o.Store.Say(ctx, r.c.RunID, level, message); err != nil {
		r.log.Warn("could not write to connector.log", "error", err)
	}
}

// reached says in the ledger's words how far every partition came.
func (r *run) reached(ctx context.Context) map[int32]string {
	planned, err := r.w.o.Store.Planned(ctx, r.c.RunID)
	if err != nil {
		r.log.Warn("could not read how far the run came", "error", err)
		return nil
	}
	out := make(map[int32]string, len(planned))
	for _, p := range planned {
		switch {
		case p.Next >= p.Target && r.proved[p.Partition]:
			out[p.Partition] = "proved empty to target"
		case p.Next >= p.Target:
			out[p.Partition] = "at target"
		case r.unproved(p.Partition):
			out[p.Partition] = "not proved"
		default:
			out[p.Partition] = "short"
		}
	}
	return out
}

// unproved tells whether the end of a partition could not be proved.
func (r *run) unproved(partition int32) bool {
	_, ok := r.notProved[partition]
	return ok
}

package manifests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/gesture"
	"highwater/sidecar/demo/psql"
)

const (
	// stepWait bounds one statement or one gesture.
	stepWait = 3 * time.Minute
	// runsMax is how many runs of a file have a variable.
	runsMax = 9
)

// Runner does what the files say, on a database that a sidecar serves. Feed and Trim may be left nil for the gestures
// themselves; SetEnv is needed by the files that change the sidecar's environment. One Runner does one file at a time.
type Runner struct {
	Pool    *pgxpool.Pool
	Brokers string // comma-separated host:port; empty: the demo's own
	Feed    func(context.Context, gesture.FeedOptions) (gesture.Fed, error)
	Trim    func(context.Context, gesture.TrimOptions) error
	// SetEnv lets the sidecar find value under name from now on; an empty value takes it away.
	SetEnv func(name, value string)
}

// Difference is one thing that did not come out as a file says.
type Difference struct{ File, What, Want, Got string }

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s: want %s, got %s", d.File, d.What, d.Want, d.Got)
}

// CheckAll does every file in order and gives all differences; each, if not nil, hears of every file as it is done.
func (r *Runner) CheckAll(ctx context.Context, each func(Manifest, []Difference)) []Difference {
	var out []Difference
	for _, m := range All() {
		found := r.Check(ctx, m)
		if each != nil {
			each(m, found)
		}
		out = append(out, found...)
	}
	return out
}

// Check does one file and gives what differs; nothing differs when the result is empty. A statement that fails where
// none should is a difference, and so is an end of ctx.
func (r *Runner) Check(ctx context.Context, m Manifest) []Difference {
	p := pass{r: r, m: m, set: map[string]bool{}}
	if m.Err != nil {
		p.differ("the file", "readable", m.Err.Error())
		return p.found
	}
	defer p.clear()
	for _, step := range m.Steps {
		if ctx.Err() != nil {
			p.differ("the file", "done to its end", ctx.Err().Error())
			break
		}
		p.do(ctx, step)
		if len(p.found) > 0 && strings.HasPrefix(step.Statement, "INSERT INTO connector.manifest") {
			return p.found // without the connector everything else would differ too
		}
	}
	p.waitForFeeds()
	for _, e := range m.Expect {
		p.judge(ctx, e)
	}
	return p.found
}

// pass is one file being done.
type pass struct {
	r       *Runner
	m       Manifest
	runs    []string // ids of the runs, in the order in which the file asked for them
	refused error    // the first statement's error, if there was one
	fed     gesture.Fed
	feeds   []feeding
	set     map[string]bool // environment variables to take away again
	found   []Difference
}

// feeding is a feed in the background.
type feeding struct {
	due  time.Time // when it is to stop
	done chan feedEnd
}

type feedEnd struct {
	fed gesture.Fed
	err error
}

func (p *pass) differ(what, want, got string) {
	p.found = append(p.found, Difference{File: p.m.File, What: what, Want: want, Got: got})
}

func (p *pass) do(ctx context.Context, step Step) {
	if step.Feed != nil { // it may go on behind this step, and has its own end
		p.feed(ctx, *step.Feed, step.Background)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stepWait)
	defer cancel()
	switch {
	case step.Statement != "":
		p.statement(ctx, step.Statement)
	case step.Trim != nil:
		o := *step.Trim
		o.Brokers = p.brokers()
		trim := p.r.Trim
		if trim == nil {
			trim = gesture.Trim
		}
		if err := trim(ctx, o); err != nil {
			p.differ("highwater trim", "no error", err.Error())
		}
	case step.Environment != nil:
		p.setEnv(step.Environment.Name, p.here(step.Environment.Value))
	default:
		p.sleep(ctx, step.Sleep)
	}
}

func (p *pass) brokers() string {
	if p.r.Brokers == "" {
		return broker.DefaultAddr
	}
	return p.r.Brokers
}

// here puts the broker that is used in the place of the demo's own.
func (p *pass) here(text string) string {
	return strings.ReplaceAll(text, broker.DefaultAddr, p.brokers())
}

// statement runs a statement and notes the run that it made, if it made one: a catch-up answers with the run's own row,
// however the run ended.
func (p *pass) statement(ctx context.Context, sql string) {
	answer, err := psql.Query(ctx, p.r.Pool, p.here(sql))
	if err == nil && strings.HasPrefix(sql, "CALL connector.catch_up(") {
		id := slices.Index(answer.Columns, "run_id")
		if id >= 0 && len(answer.Rows) == 1 && answer.Rows[0][id] != "" {
			p.runs = append(p.runs, answer.Rows[0][id])
			return
		}
		err = errors.New("no run was made")
	}
	if err == nil {
		return
	}
	if p.refused == nil && p.expectsError() {
		p.refused = err
		return
	}
	p.differ(psql.Brief(sql), "no error", describe(err))
}

func (p *pass) expectsError() bool {
	for _, e := range p.m.Expect {
		if e.Kind == expectError {
			return true
		}
	}
	return false
}

// describe adds the server's detail and hint to its message.
func describe(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err.Error()
	}
	out := fmt.Sprintf("%s %s", pg.Code, pg.Message)
	for _, more := range []string{pg.Detail, pg.Hint} {
		if more != "" {
			out += " | " + more
		}
	}
	return out
}

func (p *pass) feed(ctx context.Context, o gesture.FeedOptions, background bool) {
	o.Brokers = p.brokers()
	feed := p.r.Feed
	if feed == nil {
		feed = gesture.Feed
	}
	f := feeding{due: time.Now().Add(time.Duration(o.Seconds * float64(time.Second))), done: make(chan feedEnd, 1)}
	p.feeds = append(p.feeds, f)
	go func() {
		fed, err := feed(ctx, o)
		f.done <- feedEnd{fed, err}
	}()
	if !background {
		p.waitForFeeds()
	}
}

// waitForFeeds takes in what every feed did.
func (p *pass) waitForFeeds() {
	for _, f := range p.feeds {
		end := <-f.done
		p.fed.Count += end.fed.Count
		if end.fed.Until.After(p.fed.Until) {
			p.fed.Until = end.fed.Until
		}
		if end.err != nil {
			p.differ("highwater feed", "no error", end.err.Error())
		}
	}
	p.feeds = nil
}

// sleep waits as a shell would; a feed that is to stop within that time is waited for, however slow the machine.
func (p *pass) sleep(ctx context.Context, seconds float64) {
	pause := time.Duration(seconds * float64(time.Second))
	over := time.Now().Add(pause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	for _, f := range p.feeds {
		if f.due.After(over) {
			return
		}
	}
	p.waitForFeeds()
}

func (p *pass) setEnv(name, value string) {
	if p.r.SetEnv == nil {
		p.differ("environment "+name, "set", "this runner cannot set the sidecar's environment")
		return
	}
	p.set[name] = true
	p.r.SetEnv(name, value)
}

// clear takes the file's variables away, so that it can be done again.
func (p *pass) clear() {
	for name := range p.set {
		p.r.SetEnv(name, "")
	}
}

// fill puts the pass's values into an expectation, as psql would put its variables.
func (p *pass) fill(text string) string {
	pairs := []string{":fed", strconv.Itoa(p.fed.Count), ":'fed_until'", "'" + p.fed.Until.Format(time.RFC3339Nano) + "'"}
	for i := range runsMax {
		id := "NULL" // a run that was never made: the query then finds nothing, and says so
		if i < len(p.runs) {
			id = "'" + p.runs[i] + "'"
		}
		pairs = append(pairs, fmt.Sprintf(":'run%d'", i+1), id)
	}
	return strings.NewReplacer(pairs...).Replace(p.here(text))
}

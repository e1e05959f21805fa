package manifests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/sidecar/demo/corpus"
	"highwater/sidecar/demo/psql"
)

// judge holds one expectation against what has come out.
func (p *pass) judge(ctx context.Context, e Expectation) {
	ctx, cancel := context.WithTimeout(ctx, stepWait)
	defer cancel()
	switch e.Kind {
	case expectRun:
		p.judgeRun(ctx, e)
	case expectSQL:
		want, got := p.fill(e.Want), ""
		t, err := psql.Query(ctx, p.r.Pool, p.fill(e.SQL))
		if got = t.Unaligned(); err != nil {
			got = describe(err)
		}
		if got != want {
			p.differ(e.SQL, want, got)
		}
	case expectError:
		p.judgeError(e)
	case expectNoTopic:
		p.judgeNoTopic(ctx, e)
	}
}

// judgeRun compares a run's row in the ledger, word by word. What the run said is shown with every difference.
func (p *pass) judgeRun(ctx context.Context, e Expectation) {
	what := fmt.Sprintf("run %d", e.Run)
	if e.Run > len(p.runs) {
		p.differ(what, "a run", fmt.Sprintf("%d runs", len(p.runs)))
		return
	}
	t, err := psql.Query(ctx, p.r.Pool, fmt.Sprintf("SELECT * FROM connector.runs WHERE run_id = '%s'", p.runs[e.Run-1]))
	if err != nil || len(t.Rows) != 1 {
		p.differ(what, "one row of the ledger", fmt.Sprintf("%d rows, error %v", len(t.Rows), err))
		return
	}
	value := func(column string) (string, bool) {
		i := slices.Index(t.Columns, column)
		if i < 0 {
			return "", false
		}
		return t.Rows[0][i], true
	}
	said, _ := value("message")
	for _, test := range e.Tests {
		got, ok := value(test.Column)
		switch {
		case !ok:
			p.differ(what+" "+test.Column, test.Text, "no such column")
		case test.Contains && !strings.Contains(got, test.Text):
			p.differ(what+" "+test.Column, "a text with "+test.Text, got)
		case !test.Contains && got != test.Text:
			p.differ(what+" "+test.Column, test.Text, fmt.Sprintf("%s (message: %s)", got, said))
		}
	}
}

// judgeError compares the SQLSTATE and the findings, each once, that the refusal's detail lists line by line.
func (p *pass) judgeError(e Expectation) {
	var pg *pgconn.PgError
	if !errors.As(p.refused, &pg) {
		p.differ("the refusal", e.Line, fmt.Sprintf("error %v", p.refused))
		return
	}
	var named []string
	for line := range strings.SplitSeq(pg.Detail, "\n") {
		finding, _, _ := strings.Cut(line, ": ")
		if severity, _, ok := strings.Cut(finding, " "); ok && (severity == "ERROR" || severity == "WARN") {
			named = append(named, finding)
		}
	}
	want := slices.Sorted(slices.Values(e.Named))
	if slices.Sort(named); pg.Code != e.Want || !slices.Equal(named, want) {
		p.differ("the refusal", e.Line, describe(pg))
	}
}

// judgeNoTopic asks the broker itself, by a request that makes no topic.
func (p *pass) judgeNoTopic(ctx context.Context, e Expectation) {
	client, err := corpus.Connect(p.brokers())
	if err != nil {
		p.differ("topic "+e.Want, "none", err.Error())
		return
	}
	defer client.Close()
	request := kmsg.NewPtrMetadataRequest()
	request.AllowAutoTopicCreation = false
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(e.Want)
	request.Topics = append(request.Topics, topic)
	answer, err := request.RequestWith(ctx, client)
	if err != nil {
		p.differ("topic "+e.Want, "none", err.Error())
		return
	}
	if len(answer.Topics) != 1 || answer.Topics[0].ErrorCode != kerr.UnknownTopicOrPartition.Code {
		p.differ("topic "+e.Want, "none", fmt.Sprintf("%+v", answer.Topics))
	}
}

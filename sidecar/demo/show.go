package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/manifests"
	"highwater/sidecar/demo/psql"
)

// quickstart is the connector that the demo declares and runs for whoever watches.
const quickstart = "acme-kafka-partners"

// What the demo shows of it: the declaration, what landed, and the account of the run.
var shown = []string{
	"SELECT name, scopes, spec FROM connector.manifest WHERE name = '" + quickstart + "'",
	"SELECT partner_id, name, city, credit_limit, updated_at FROM connector.t_acme_partners ORDER BY id LIMIT 4",
	"SELECT status, records_in, records_out, skipped, dead_letters, chunks, duration FROM connector.runs WHERE connector = '" + quickstart + "' ORDER BY scheduled_at",
}

// ledger is what --once prints at its end.
const ledger = "SELECT connector, status, code, records_in, records_out, skipped, dead_letters, duration FROM connector.runs ORDER BY scheduled_at"

// show declares the quickstart, runs it once and prints it, then the line that leads into the database.
func (p *parts) show(ctx context.Context) error {
	if p.broker.Addr() != broker.DefaultAddr {
		p.say("The broker listens on %s and not on %s: put that into a demo manifest before you run it.\n\n", p.broker.Addr(), broker.DefaultAddr)
	}
	statements, err := p.quickstart()
	if err != nil {
		return err
	}
	for _, statement := range statements {
		p.say("%s;\n\n", statement)
		if _, err := psql.Query(ctx, p.pool, statement); err != nil {
			return fmt.Errorf("showing the quickstart: %w", err)
		}
	}
	for _, statement := range shown {
		if err := p.print(ctx, statement); err != nil {
			return err
		}
	}
	p.say("PostgreSQL holds the table, the broker on %s the topics acme.*. Look around:\n\n  psql %q\n", p.broker.Addr(), p.postgres.URL(database))
	if p.o.Terminal {
		p.say("\nEverything goes when this ends: Ctrl-C.\n")
	}
	return nil
}

// quickstart takes the declaration and the first run out of the manifest's own file.
func (p *parts) quickstart() ([]string, error) {
	for _, m := range manifests.All() {
		if m.Name != quickstart || m.Err != nil || len(m.Steps) < 2 {
			continue
		}
		var out []string
		for _, step := range m.Steps[:2] {
			out = append(out, strings.ReplaceAll(step.Statement, broker.DefaultAddr, p.broker.Addr()))
		}
		return out, nil
	}
	return nil, errors.New("the quickstart's manifest cannot be read")
}

// print shows a statement and its answer as psql would.
func (p *parts) print(ctx context.Context, statement string) error {
	t, err := psql.Query(ctx, p.pool, statement)
	if err != nil {
		return fmt.Errorf("showing the demo: %w", err)
	}
	p.say("%s;\n\n", statement)
	return t.Print(p.o.Out)
}

// say writes for whoever watches; if nobody can read it, there is nothing to do about it.
func (p *parts) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.o.Out, format, args...)
}

// once does every manifest, prints what came of each and then the ledger. The error names what differs.
func (p *parts) once(ctx context.Context) error {
	runner := &manifests.Runner{Pool: p.pool, Brokers: p.broker.Addr(), SetEnv: p.env.put}
	found := runner.CheckAll(ctx, func(m manifests.Manifest, found []manifests.Difference) {
		if len(found) == 0 {
			p.say("ok      %s\n", m.File)
			return
		}
		p.say("not ok  %s\n", m.File)
		for _, d := range found {
			p.say("        %s: want %s, got %s\n", d.What, d.Want, d.Got)
		}
	})
	p.say("\n")
	if err := p.print(ctx, ledger); err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d demo manifests did not come out as their headers say: %s", len(files(found)), len(manifests.All()), strings.Join(files(found), ", "))
}

// files lists the files of some differences, each once, in order.
func files(found []manifests.Difference) []string {
	var out []string
	for _, d := range found {
		if len(out) == 0 || out[len(out)-1] != d.File {
			out = append(out, d.File)
		}
	}
	return out
}

// Package migrations: provisional runner; to be replaced by the real one as soon as it lands (delete this file).
package migrations

import (
	"context"
	"embed"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"highwater/sql/api"
)

//go:embed *.sql
var files embed.FS

type Options struct{ Logger *slog.Logger }

func Print(w io.Writer) error { return fmt.Errorf("provisional") }

func Apply(ctx context.Context, config *pgx.ConnConfig, o Options) error {
	pc, err := pgxpool.ParseConfig(config.ConnString())
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	exec := func(sql string) error { _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); return err }
	if err := exec("SELECT pg_advisory_lock(77, 1)"); err != nil {
		return err
	}
	b, _ := files.ReadFile("bootstrap.sql")
	if err := exec(string(b)); err != nil {
		return err
	}
	pc.ConnConfig.RuntimeParams["role"] = "highwater_owner"
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: "connector_queue", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if err := exec("SET ROLE highwater_owner"); err != nil {
		return err
	}
	var n int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_class WHERE relname = '_endpoint'").Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		for _, f := range []string{"0001_manifest_and_tenants.sql", "0002_state.sql"} {
			b, _ := files.ReadFile(f)
			if err := exec("BEGIN;" + string(b) + ";COMMIT"); err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
		}
	}
	order, err := api.FS.ReadFile("ORDER")
	if err != nil {
		return err
	}
	names := strings.Fields(string(order))
	var all []string
	for _, f := range names {
		b, err := api.FS.ReadFile(f)
		if err != nil {
			return err
		}
		all = append(all, string(b))
	}
	_ = slices.Sort[[]string]
	return exec("BEGIN;" + strings.Join(all, ";\n") + ";COMMIT")
}

package migrations

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// schemaMark is what River's files write where the schema's name belongs.
const schemaMark = "/* TEMPLATE: schema */"

// Print writes all migrations as one script for a DBA to run with psql on a database that has none of them. Each step is a
// transaction of its own; afterwards [Apply] finds nothing to do.
func Print(w io.Writer) error {
	text, err := script()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	return nil
}

func script() (string, error) {
	var b strings.Builder
	bootstrap, err := files.ReadFile("bootstrap.sql")
	if err != nil {
		return "", fmt.Errorf("reading bootstrap.sql: %w", err)
	}
	b.WriteString("-- The schema of highwater, for a database that has none of it. Run with: psql -X -f this-file\n\\set ON_ERROR_STOP on\n\n")
	b.WriteString("-- bootstrap.sql\n" + string(bootstrap) + "\nSET ROLE " + owner + ";\n\n")
	if err := printRiver(&b); err != nil {
		return "", err
	}
	all, err := steps(files)
	if err != nil {
		return "", err
	}
	for _, s := range all {
		fmt.Fprintf(&b, "-- %s\nBEGIN;\n%s\n%s\nCOMMIT;\n\n", s.name, s.sql, s.record())
	}
	api, err := repeatable()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "-- functions, views and grants\nBEGIN;\n%s%s\nCOMMIT;\nRESET ROLE;\n", api, recordRepeatable(digest(api)))
	return b.String(), nil
}

// printRiver writes River's own steps with the schema put in. Each is a transaction of its own, because one of them uses a
// value of an enumeration that the one before has added.
func printRiver(b *strings.Builder) error {
	m, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Schema: queueSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("preparing the queue's migrations: %w", err)
	}
	last := 0
	for _, v := range m.AllVersions() {
		fmt.Fprintf(b, "-- River, step %d: %s\nBEGIN;\n%s\nCOMMIT;\n\n", v.Version, v.Name, strings.ReplaceAll(v.SQLUp, schemaMark, queueSchema+"."))
		last = v.Version
	}
	fmt.Fprintf(b, "INSERT INTO %s.river_migration (line, version) SELECT 'main', v FROM generate_series(1, %d) AS v ON CONFLICT DO NOTHING;\n\n", queueSchema, last)
	return nil
}

package migrations

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"highwater/sql/api"
)

const (
	// schemaMark is what River's files write where the schema's name belongs.
	schemaMark = "/* TEMPLATE: schema */"
	// riverLine is the first of River's steps whose records name the line of steps they belong to.
	riverLine = 5
	// todo is the psql variable that tells whether a step is still to be done.
	todo = "highwater_todo"
)

// Print writes all migrations as one script for a DBA to run with psql. Each step is a transaction of its own and is left
// out where the database has it, so the script serves a first migration and every later one. Afterwards [Apply] finds
// nothing to do. What Apply refuses (a step that was changed, a newer database) the script does not see.
func Print(w io.Writer) error {
	bundle, err := load(files, api.FS)
	if err != nil {
		return err
	}
	text, err := bundle.script()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	return nil
}

func (b *bundle) script() (string, error) {
	var s strings.Builder
	s.WriteString("-- The schema of highwater. Run it with: psql -X -f FILE, as often as you like: what is there already is left out.\n" +
		"-- It needs CREATE on the database and CREATEROLE, or a superuser.\n" +
		"\\set ON_ERROR_STOP on\n\\set QUIET on\n" +
		"-- River's steps select constants here and there, which say nothing.\n\\o /dev/null\n\n")
	for _, name := range slices.Sorted(maps.Keys(sessionSettings)) {
		fmt.Fprintf(&s, "SET %s = %s;\n", name, sessionSettings[name])
	}
	fmt.Fprintf(&s, "\n-- No other runner meanwhile.\nDO $do$ BEGIN PERFORM pg_advisory_lock(%d, %d); END $do$;\n\n", lockClass, lockKey)
	fmt.Fprintf(&s, "-- bootstrap.sql\n%s\nSET ROLE %s;\n\n", b.bootstrap, owner)
	if err := printRiver(&s); err != nil {
		return "", err
	}
	for _, step := range b.steps {
		printStep(&s, step.name, fmt.Sprintf("NOT EXISTS (SELECT FROM connector._migration WHERE number = %d)", step.number),
			"BEGIN;\n"+step.sql+"\n"+step.record()+"\nCOMMIT;")
	}
	var text strings.Builder
	text.WriteString(begin + "\n")
	for _, f := range b.repeatable {
		fmt.Fprintf(&text, "-- sql/api/%s\n%s\n", f.name, f.sql)
	}
	text.WriteString(b.record() + "\nCOMMIT;")
	printStep(&s, "functions, views and grants", fmt.Sprintf("NOT EXISTS (SELECT FROM connector._repeatable WHERE sha256 = '%s')", b.digest), text.String())
	fmt.Fprintf(&s, "RESET ROLE;\nDO $do$ BEGIN PERFORM pg_advisory_unlock(%d, %d); END $do$;\n\\o\n", lockClass, lockKey)
	return s.String(), nil
}

// printStep writes one step that runs only where the condition holds.
func printStep(s *strings.Builder, name, condition, text string) {
	fmt.Fprintf(s, "-- %s\nSELECT %s AS %s \\gset\n\\if :%s\n%s\n\\endif\n\n", name, condition, todo, todo, text)
}

// printRiver writes River's own steps with the schema put in, and their records as River makes them.
func printRiver(s *strings.Builder) error {
	m, err := riverSteps(nil)
	if err != nil {
		return err
	}
	for _, v := range m.AllVersions() {
		if v.Version > riverVersion {
			break
		}
		condition := fmt.Sprintf("NOT EXISTS (SELECT FROM %s.river_migration WHERE version = %d)", queueSchema, v.Version)
		if v.Version == 1 { // which makes the table of records
			condition = fmt.Sprintf("to_regclass('%s.river_migration') IS NULL", queueSchema)
		}
		record := fmt.Sprintf("INSERT INTO %s.river_migration (version) VALUES (%d);", queueSchema, v.Version)
		if v.Version >= riverLine {
			record = fmt.Sprintf("INSERT INTO %s.river_migration (line, version) VALUES ('main', %d);", queueSchema, v.Version)
		}
		printStep(s, fmt.Sprintf("River's step %d: %s", v.Version, v.Name), condition,
			"BEGIN;\n"+strings.ReplaceAll(v.SQLUp, schemaMark, queueSchema+".")+"\n"+record+"\nCOMMIT;")
	}
	return nil
}

package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"

	"highwater/migrations"
	"highwater/sidecar/config"
)

// usage is what `highwater` alone prints.
const usage = `highwater turns Kafka topics into PostgreSQL tables, driven by SQL.

  highwater serve     apply migrations, then serve the database
  highwater migrate   apply migrations only (--print writes them as one psql script)
  highwater seal      read a value unseen, print the statement that stores it sealed (name it: highwater seal NAME)
  highwater reseal    rotate the key of the secrets (-lost: the old one is gone, erase them)
  highwater demo      an embedded database, an embedded broker and eleven topics to try it on (--once checks and exits)
  highwater feed      write partners to a topic of the demo broker
  highwater trim      delete the oldest messages of a topic of the demo broker
  highwater version   print the version

Each command explains its flags with -h. Everything else is SQL: start with \d+ connector.manifest in psql.
`

// console is where a command reads its settings and writes its words.
type console struct {
	args   []string
	lookup func(string) (string, bool)
	out    io.Writer
	err    *os.File
}

// Run carries out one command line (without the program's name). The error, if any, bears its exit code.
func Run(ctx context.Context, args []string, lookup func(string) (string, bool), out, errs *os.File) error {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return errors.New("no command given")
	}
	commands := map[string]func(context.Context, console) error{
		"serve": serve, "migrate": migrate, "demo": runDemo, "feed": feed, "trim": trim, "version": version,
		"seal": sealValue, "reseal": reseal,
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(out, usage)
		return nil
	}
	run, ok := commands[args[0]]
	if !ok {
		fmt.Fprint(errs, usage)
		return fmt.Errorf("unknown command %q", args[0])
	}
	err := run(ctx, console{args[1:], lookup, out, errs})
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}

func version(_ context.Context, c console) error {
	fmt.Fprintln(c.out, "highwater", Version)
	return nil
}

func serve(ctx context.Context, c console) error {
	cfg, err := settings(c)
	if err != nil {
		return err
	}
	return Serve(ctx, Options{Config: cfg, Environ: c.lookup, Logger: cfg.Logger(c.err)})
}

// settings reads the settings of serve; a value out of its limit is a fault of configuration, a bad flag one of usage.
func settings(c console) (config.Config, error) {
	cfg, err := config.Parse(c.args, c.lookup, c.err)
	if err == nil || errors.Is(err, config.ErrUsage) {
		return cfg, err //nolint:wrapcheck // config names the setting
	}
	return cfg, &Error{Exit: ExitConfiguration, Err: err}
}

func migrate(ctx context.Context, c console) error {
	print := false
	if i := slices.IndexFunc(c.args, func(a string) bool { return a == "--print" || a == "-print" }); i >= 0 {
		print, c.args = true, slices.Delete(slices.Clone(c.args), i, i+1)
	}
	cfg, err := settings(c)
	if err != nil {
		return err
	}
	if print {
		if err := migrations.Print(c.out); err != nil {
			return &Error{Exit: ExitMigration, Err: err}
		}
		return nil
	}
	pc, err := pgx.ParseConfig(cfg.DatabaseURL)
	if err != nil {
		return &Error{Exit: ExitConfiguration, Err: fmt.Errorf("reading the database URL: %w", err)}
	}
	if err := migrations.Apply(ctx, pc, migrations.Options{Logger: cfg.Logger(c.err)}); err != nil {
		return &Error{Exit: ExitMigration, Err: err}
	}
	return nil
}

// Command highwater is a sidecar beside PostgreSQL that turns Kafka topics into tables, driven only by SQL.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"highwater/sidecar/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := app.Run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "highwater:", err)
	}
	os.Exit(app.ExitCode(err))
}

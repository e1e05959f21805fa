// Package job names what travels through the queue: a run's id and nothing else. The row in River's table is written by
// SQL (connector._enqueue); a test compares it with the one River's own client would write.
package job

import "github.com/google/uuid"

// Queue is the one queue that sidecars serve.
const Queue = "connector"

// Schema is where River's tables live.
const Schema = "connector_queue"

// Run asks a sidecar to carry out a run. What is to be done stands in the ledger, never here: whoever could write a job
// could otherwise ask for anything.
type Run struct {
	RunID uuid.UUID `json:"run_id"`
}

// Kind is the job's name in River's table.
func (Run) Kind() string { return "connector_run" }

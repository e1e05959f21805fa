package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"highwater/queue/build"
	"highwater/queue/land"
	"highwater/reader/kafka"
	"highwater/reader/plan"
	"highwater/sql/store"
)

// stop is an error that says how the run ends.
type stop struct {
	end store.End
	err error // the cause, may be nil
}

func (s *stop) Error() string { return s.end.Message }
func (s *stop) Unwrap() error { return s.err }

func failed(code, message, hint string) store.End {
	return store.End{Status: "Failed", Code: code, Message: message, Hint: hint}
}

func partial(code, message, hint string) store.End {
	return store.End{Status: "Partial", Code: code, Message: message, Hint: hint}
}

// endOf says how a run ends that met err. It is the one place where an error becomes a line of the ledger; where it
// comes from a reader, a refusal of the plan or the landing, that room has chosen the code already. failOnLost is the
// manifest's on_lost: fail.
func endOf(err error, failOnLost bool) store.End {
	if s, ok := asStop(err); ok {
		return s.end
	}
	var (
		refusal  *plan.Refusal
		reading  *kafka.Error
		landing  *land.Error
		reserved *build.ReservedError
		schema   *build.SchemaError
	)
	switch {
	case errors.Is(err, errCancelled):
		return store.End{Status: "Cancelled", Code: "cancelled", Message: "cancelled on request; the chunks committed before stay"}
	case errors.As(err, &refusal):
		return failed(refusal.Code, refusal.Message, refusal.Hint)
	case errors.As(err, &reading):
		e := failed(reading.Code, reading.Message, reading.Hint)
		if reading.Code == "offsets_expired" && !failOnLost {
			e.Status = "Partial" // retention passed the reader in mid-run; the next run plans anew and names the range
		}
		e.Retryable = reading.Retryable
		return e
	case errors.As(err, &landing):
		e := failed(landing.Code, landing.Message, landing.Hint)
		e.Retryable = landing.Retryable
		return e
	case errors.As(err, &reserved):
		return failed("reserved_column", reserved.Error(), reserved.Hint())
	case errors.As(err, &schema):
		return failed(schema.Code, schema.Error(), schema.Hint())
	}
	return failed("internal", safe(err.Error()), "This is a defect of the sidecar: its log has the details.")
}

// endOfPass says how a run ends that has read and landed all it could.
func (r *run) endOfPass() store.End {
	switch {
	case len(r.notProved) > 0:
		return partial("not_proved", strings.Join(sorted(r.notProved), "; "),
			"Look at the broker; the next run reads on from the stored position.")
	case len(r.lost) > 0:
		return partial("offsets_expired", strings.Join(r.lost, "; "),
			"Raise the topic's retention or run more often; what the broker deleted cannot be read.")
	}
	e := store.End{Status: "Completed", Code: "ok"}
	if len(r.expired) > 0 {
		e.Code, e.Message = "expired_before_first_read", strings.Join(r.expired, "; ")
	}
	if n := r.letters; n > 0 {
		e.Hint = fmt.Sprintf("%d messages were set aside: SELECT * FROM connector.dlq WHERE run_id = '%s';", n, r.c.RunID)
	}
	return e
}

// stopped gives the reason why reading was stopped from outside, or nil.
func stopped(reading context.Context) error {
	cause := context.Cause(reading)
	for _, known := range []error{errCancelled, errLost, errHandBack, errSlice} {
		if errors.Is(cause, known) {
			return known
		}
	}
	return nil
}

// safe makes a text storable: NUL is shown as an escape, bytes that are not UTF-8 as the replacement character.
func safe(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", `\u0000`)
}

// sorted gives the sentences in partition order.
func sorted(sentences map[int32]string) []string {
	out := make([]string, 0, len(sentences))
	for _, p := range slices.Sorted(maps.Keys(sentences)) {
		out = append(out, sentences[p])
	}
	return out
}

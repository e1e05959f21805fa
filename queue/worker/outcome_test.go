package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"highwater/queue/build"
	"highwater/queue/land"
	"highwater/reader/kafka"
	"highwater/reader/plan"
	"highwater/sql/store"
)

func TestEndOf(t *testing.T) {
	for _, c := range []struct {
		name       string
		err        error
		failOnLost bool
		want       store.End
	}{
		{"an end that was chosen already", &stop{end: partial("poison_budget", "m", "h")}, false, store.End{Status: "Partial", Code: "poison_budget", Message: "m", Hint: "h"}},
		{"a cancel", fmt.Errorf("waiting: %w", errCancelled), false, store.End{Status: "Cancelled", Code: "cancelled", Message: "cancelled on request; the chunks committed before stay"}},
		{"a refusal of the plan", &plan.Refusal{Code: "log_truncated", Message: "m", Hint: "h"}, false, failed("log_truncated", "m", "h")},
		{"the reader's word, wrapped", fmt.Errorf("reading: %w", &kafka.Error{Code: "broker_lost", Message: "m", Retryable: true}), false, store.End{Status: "Failed", Code: "broker_lost", Message: "m", Retryable: true}},
		{"retention in mid-run is Partial", &kafka.Error{Code: "offsets_expired", Message: "m"}, false, store.End{Status: "Partial", Code: "offsets_expired", Message: "m"}},
		{"unless on_lost says fail", &kafka.Error{Code: "offsets_expired", Message: "m"}, true, failed("offsets_expired", "m", "")},
		{"the landing's word", &land.Error{Code: "table_missing", Message: "m", Hint: "h"}, false, failed("table_missing", "m", "h")},
		{"a schema that may not change", &build.SchemaError{Code: "strict_schema"}, false, store.End{Status: "Failed", Code: "strict_schema"}},
		{"anything else is our defect, and storable", errors.New("odd\x00\xff"), false, failed("internal", "odd\\u0000\uFFFD", "This is a defect of the sidecar: its log has the details.")},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := endOf(c.err, c.failOnLost)
			if got.Status != c.want.Status || got.Code != c.want.Code || got.Retryable != c.want.Retryable || c.want.Message != "" && (got.Message != c.want.Message || got.Hint != c.want.Hint) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheEndOfARunThatReadAllItCould(t *testing.T) {
	for _, c := range []struct {
		name         string
		r            run
		status, code string
	}{
		{"all well", run{}, "Completed", "ok"},
		{"offsets had left before the first read", run{expired: []string{"x"}}, "Completed", "expired_before_first_read"},
		{"a range was lost", run{lost: []string{"x"}}, "Partial", "offsets_expired"},
		{"an end was not proved", run{lost: []string{"x"}, notProved: map[int32]string{1: "y"}}, "Partial", "not_proved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := c.r.endOfPass(); e.Status != c.status || e.Code != c.code {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestHeld(t *testing.T) {
	h, id := NewHeld(), uuid.New()
	reading, _, drop := h.hold(t.Context(), id)
	if ids := h.IDs(); len(ids) != 1 || ids[0] != id {
		t.Fatalf("in hand: %v", ids)
	}
	h.Act(uuid.New(), "cancel")
	if stopped(reading) != nil {
		t.Fatal("another run's cancel stopped this one")
	}
	h.Act(id, "cancel")
	if !errors.Is(stopped(reading), errCancelled) {
		t.Errorf("stopped by %v", context.Cause(reading))
	}
	drop()
	if len(h.IDs()) != 0 {
		t.Error("the run is still in hand")
	}
	lost, _, drop := h.hold(t.Context(), id)
	defer drop()
	h.Act(id, "lost")
	if !errors.Is(stopped(lost), errLost) {
		t.Errorf("stopped by %v", context.Cause(lost))
	}
	h.HandBack()
	late, _, dropLate := h.hold(t.Context(), uuid.New())
	defer dropLate()
	if !errors.Is(stopped(late), errHandBack) {
		t.Error("a run that comes while the sidecar stops is not handed back")
	}
}

func TestTargetsAreBounded(t *testing.T) {
	spans := make([]plan.Span, targetsShown+5)
	for i := range spans {
		spans[i] = plan.Span{Partition: int32(i), Target: 7}
	}
	if got := targets(spans[:2]); got != "0: 7, 1: 7" {
		t.Error(got)
	}
	if got := targets(spans); len(got) > 20*targetsShown || !strings.HasSuffix(got, "and 5 more") {
		t.Error(got)
	}
}

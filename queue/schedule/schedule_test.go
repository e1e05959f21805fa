package schedule

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"highwater/sql/store"
)

// slots answers each look with the next of its answers, and with nothing to do after the last.
type slots struct {
	answers  []answer
	looks    []time.Duration // since the start
	resigned int
	begun    time.Time
}

type answer struct {
	store.Fired
	err error
}

func (s *slots) FireSchedules(context.Context) (store.Fired, error) {
	n := len(s.looks)
	s.looks = append(s.looks, time.Since(s.begun))
	if n < len(s.answers) {
		return s.answers[n].Fired, s.answers[n].err
	}
	return store.Fired{}, nil
}

func (s *slots) Resign(ctx context.Context) error {
	s.resigned++
	return ctx.Err()
}

// serve runs a service for so long, on a clock of its own, and gives what it logged.
func serve(t *testing.T, s *slots, long time.Duration) (logged string) {
	t.Helper()
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s.begun = time.Now()
		service := New(s, slog.New(slog.NewTextHandler(&log, nil)))
		if err := service.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(long)
		synctest.Wait()
		service.Stop(t.Context())
	})
	return log.String()
}

func TestItLooksOnceASecondAndResigns(t *testing.T) {
	s := &slots{}
	serve(t, s, 3500*time.Millisecond)
	if len(s.looks) != 4 || s.looks[0] != 0 || s.looks[3] != 3*time.Second {
		t.Errorf("it looked at %v", s.looks)
	}
	if s.resigned != 1 {
		t.Errorf("it resigned %d times", s.resigned)
	}
}

func TestWhereMoreIsDueItLooksAgainAtOnceWithinABound(t *testing.T) {
	full := answer{Fired: store.Fired{Leads: true, Taken: store.SlotsMax, Started: store.SlotsMax}}
	s := &slots{answers: []answer{full, full, {}}}
	serve(t, s, 500*time.Millisecond)
	if len(s.looks) != 3 || s.looks[2] != 0 {
		t.Errorf("it looked at %v", s.looks)
	}
	s = &slots{}
	for range 2 * looksMax {
		s.answers = append(s.answers, full)
	}
	serve(t, s, 500*time.Millisecond)
	if len(s.looks) != looksMax {
		t.Errorf("it looked %d times without a pause", len(s.looks))
	}
}

func TestItGoesOnAfterErrorsAndTellsOfThemOnce(t *testing.T) {
	lost := answer{err: errors.New("the server is gone")}
	s := &slots{answers: []answer{{}, lost, lost, lost, {}, lost}}
	logged := serve(t, s, 6500*time.Millisecond)
	if len(s.looks) != 7 {
		t.Errorf("it looked at %v", s.looks)
	}
	if n := strings.Count(logged, "the server is gone"); n != 2 {
		t.Errorf("%d lines for two outages:\n%s", n, logged)
	}
}

func TestItTellsOnceThatSchedulesAreHeld(t *testing.T) {
	held, leads := answer{Fired: store.Fired{Held: true}}, answer{Fired: store.Fired{Leads: true}}
	logged := serve(t, &slots{answers: []answer{held, held, held, leads, leads}}, 4500*time.Millisecond)
	for what, want := range map[string]int{"connector.adopt()": 1, "no longer held": 1, "the lead of the schedules has changed": 1} {
		if n := strings.Count(logged, what); n != want {
			t.Errorf("%q is told %d times, want %d:\n%s", what, n, want, logged)
		}
	}
}

// The first look must be answered: before it, nobody knows whether the runs in the queue are this database's own.
func TestItDoesNotStartWithoutAnAnswer(t *testing.T) {
	s := &slots{answers: []answer{{err: errors.New("no answer")}}}
	service := New(s, slog.New(slog.DiscardHandler))
	if err := service.Start(t.Context()); err == nil {
		t.Error("it started")
	}
	service.Stop(t.Context())
	if s.resigned != 0 {
		t.Error("it resigned what it never had")
	}
}

package worker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestNoLineShowsACredential(t *testing.T) {
	var out bytes.Buffer
	m := &mask{}
	log := slog.New(maskedLog{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}), m})
	if got := m.text("hunter2-canary"); got != "hunter2-canary" {
		t.Errorf("masked before anything was hidden: %s", got)
	}
	m.hide([]string{"hunter2-canary", "abc", "-----BEGIN KEY-----\nMIIcanaryMIIcanaryMIIcanary\n-----END KEY-----\n"})
	log = log.With("early", "hunter2-canary").WithGroup("g")
	log.Error("refused for hunter2-canary: abc", "error", errors.New("login hunter2-canary failed"), "value", "MIIcanaryMIIcanaryMIIcanary",
		slog.Group("inner", "bytes", []string{"hunter2-canary"}), "n", 7)
	if got := out.String(); strings.Contains(got, "canary") || strings.Count(got, masked) < 5 || !strings.Contains(got, "abc") || !strings.Contains(got, "g.n=7") {
		t.Errorf("%s", got)
	}
}

func TestANameThatHoldsAUserNameIsKept(t *testing.T) {
	m := &mask{}
	m.hide([]string{"acme", "a-long-pass-phrase"})
	got := m.text("acme: reset_cursor('acme-orders') acme.orders t_acme; login acme@x, xa-long-pass-phrasex")
	if want := "***: reset_cursor('acme-orders') acme.orders t_acme; login ***@x, x***x"; got != want {
		t.Errorf("%s", got)
	}
}

func TestAStoredSecretThatDoesNotOpenIsNoReasonToAskTheEnvironment(t *testing.T) {
	r := resolver{
		registry: func(string) (string, bool) { return "", false }, environ: func(string) (string, bool) { return "another-credential", true },
		unopened: map[string]string{"PW": "it is sealed to key 00"},
	}
	_, err := r.value("auth.password_env", "PW")
	s, ok := asStop(err)
	if !ok || s.end.Code != "secret_missing" {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"'PW' (auth.password_env)", "sealed to key 00", "highwater seal PW"} {
		if !strings.Contains(s.end.Message+s.end.Hint, part) {
			t.Errorf("%s | %s has no %s", s.end.Message, s.end.Hint, part)
		}
	}
}

func TestTheRegistryComesFirstAndWhatIsFoundIsHidden(t *testing.T) {
	var credentials []string
	r := resolver{
		registry: func(name string) (string, bool) {
			v, ok := map[string]string{"A": "registry", "B": " "}[name]
			return v, ok
		},
		environ: func(string) (string, bool) { return "environment", true }, credentials: &credentials,
	}
	for name, want := range map[string]string{"A": "registry", "B": "environment", "C": "environment"} {
		if got, err := r.value("auth.password_env", name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := r.value("brokers_env", "A"); err != nil || len(credentials) != 3 {
		t.Errorf("%d credentials, %v: an address is none", len(credentials), err)
	}
}

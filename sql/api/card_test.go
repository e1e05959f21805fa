package api_test

import (
	"strings"
	"testing"
)

func TestTheCardOfAScope(t *testing.T) {
	admin, operator, analyst, role := shared(t)
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	want := "scope \"billing\": 1 table\n\nconnector.t_partners -- connector acme, no run has completed yet\n  (not made yet: no run has had a row to write)"
	if got := get[string](analyst, "SELECT connector.card('billing')"); got != want {
		t.Errorf("before the first run:\n%s", got)
	}
	made(admin, "acme")
	admin.must("ALTER TABLE connector.t_partners ADD \"select\" jsonb, ADD \"a\nb\\\"\"\u202e\" numeric(18,4)")
	admin.must("UPDATE connector._endpoint SET data_as_of = '2026-12-01 02:00:00.5+01'")
	want = "scope \"billing\": 1 table\n\nconnector.t_partners -- connector acme, data as of 2026-12-01 01:00:00.500000 UTC\n" +
		"  id bigint\n  tenant_id bigint\n  \"Name\" text\n  \"select\" jsonb\n  U&\"a\\000ab\\\\\"\"\\202e\" numeric(18,4)"
	got := get[string](analyst, "SELECT connector.card('billing')")
	if got != want {
		t.Errorf("the card is\n%s\nwant\n%s", got, want)
	}
	// Ready for SQL means that the analyst can send it as it stands.
	for _, line := range strings.Split(got, "\n")[3:] {
		column := line[2:strings.LastIndex(line, " ")]
		analyst.must("SELECT " + column + " FROM connector.t_partners")
	}
	// Its definition reads the same on the way through the catalog as in the card.
	if got := get[string](operator, "SELECT connector.card('billing')"); got != want {
		t.Errorf("an operator's card is\n%s", got)
	}
	operator.must("UPDATE connector.manifest SET scopes = '{hr}'")
	analyst.fails("P0002", "SELECT connector.card('billing')")
}

func TestWhoseCardItIs(t *testing.T) {
	admin, seven, eight, reader, stranger := tenants(t)
	made(admin, "seven")
	made(admin, "eight")
	for _, s := range []*session{seven, reader} {
		if got := get[string](s, "SELECT connector.card('billing')"); !strings.Contains(got, "t_seven") || strings.Contains(got, "eight") {
			t.Errorf("the card of tenant 7 is\n%s", got)
		}
	}
	eight.must("UPDATE connector.manifest SET scopes = '{hr}'")
	known, unknown := seven.fails("P0002", "SELECT connector.card('hr')"), seven.fails("P0002", "SELECT connector.card('no')")
	if strings.ReplaceAll(known.Message, "hr", "no") != unknown.Message || known.Hint != unknown.Hint {
		t.Errorf("another tenant's scope: %q, but an unknown one: %q", known.Message, unknown.Message)
	}
	seven.fails("P0002", "SELECT connector.card(NULL)")
	stranger.fails("42501", "SELECT connector.card('billing')")

	// A role that only scopes let in is told of its own ones: another scope of its tenant is answered as an unknown one.
	role := newRole(t, admin)
	admin.must("INSERT INTO connector.tenant_roles VALUES ($1, 7)", role)
	seven.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('other', $1)", role)
	analyst := as(t, admin.Config().ConnString(), role)
	analyst.fails("P0002", "SELECT connector.card('billing')")
	seven.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	if got := get[string](analyst, "SELECT connector.card('billing')"); !strings.Contains(got, "connector.t_seven") {
		t.Errorf("the analyst's card is\n%s", got)
	}
	admin.must("DELETE FROM connector.scope_roles")
}

// The card is of the caller's snapshot, as the rows are that the caller reads: what commits later is in neither.
func TestTheCardIsOfTheCallersSnapshot(t *testing.T) {
	admin, operator, _, _ := shared(t)
	made(admin, "acme")
	operator.must("BEGIN ISOLATION LEVEL REPEATABLE READ")
	before := get[string](operator, "SELECT connector.card('billing')")
	admin.must("UPDATE connector._endpoint SET data_as_of = now()")
	if got := get[string](operator, "SELECT connector.card('billing')"); got != before {
		t.Errorf("within one snapshot the card became\n%s", got)
	}
	operator.must("COMMIT")
	if got := get[string](operator, "SELECT connector.card('billing')"); !strings.Contains(got, "data as of 2") {
		t.Errorf("after it the card is\n%s", got)
	}
}

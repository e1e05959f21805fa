package api_test

import (
	"testing"

	"github.com/google/uuid"
)

// letters makes n open dead letters of a run of acme and gives their ids.
func letters(t *testing.T, s *session, run uuid.UUID, n int) []uuid.UUID {
	t.Helper()
	return get[[]uuid.UUID](s, `WITH made AS (
		INSERT INTO connector._dlq (tenant_id, connector_id, connector, run_id, reason, message, payload, topic, partition, "offset")
		SELECT r.tenant_id, r.connector_id, r.connector, r.run_id, 'MalformedSource', 'why', '{}', 'acme.partners', 0, g
		FROM connector._run AS r, generate_series(0, $2::int - 1) AS g WHERE r.run_id = $1 RETURNING id)
		SELECT array_agg(id) FROM made`, run, n)
}

func TestLettersAreClosedOnceAndAudited(t *testing.T) {
	s, _ := stage(t)
	ids := letters(t, s, s.run("skip"), 5)
	for _, c := range []struct {
		call string
		arg  any
		want string
	}{
		{"SELECT connector.dlq_discard($1::uuid)::text", ids[0], "true"},
		{"SELECT connector.dlq_discard($1::uuid)::text", ids[0], "false"},
		{"SELECT connector.dlq_replayed($1::uuid)::text", ids[0], "false"},
		{"SELECT connector.dlq_replayed($1::uuid)::text", ids[1], "true"},
		{"SELECT connector.dlq_discard($1::uuid)::text", uuid.New(), "false"},
		{"SELECT connector.dlq_discard($1::uuid[])::text", ids[:3], "1"},
		{"SELECT connector.dlq_replayed($1::uuid[])::text", ids, "2"},
		{"SELECT connector.dlq_replayed($1::uuid[])::text", []uuid.UUID{}, "0"},
		{"SELECT connector.dlq_discard($1::uuid[])::text", nil, "0"},
	} {
		if got := get[string](s, c.call, c.arg); got != c.want {
			t.Errorf("%s of %v: %s, want %s", c.call, c.arg, got, c.want)
		}
	}
	if got := get[string](s, "SELECT string_agg(status, ' ' ORDER BY \"offset\") FROM connector.dlq"); got != "discarded replayed discarded replayed replayed" {
		t.Error(got)
	}
	if got := get[string](s, "SELECT string_agg(action || ' ' || jsonb_array_length(detail -> 'ids'), ', ' ORDER BY at) FROM connector.audit"); got !=
		"dlq_discard 1, dlq_replayed 1, dlq_discard 1, dlq_replayed 2" {
		t.Errorf("audit: %s", got)
	}
}

func TestLettersOfAnotherTenantAreUnknown(t *testing.T) {
	s, _ := stage(t)
	ids := letters(t, s, s.run("skip"), 1)
	role := newRole(t, s, "highwater_operator")
	s.must("INSERT INTO connector.tenant_roles VALUES ($1, 9)", role)
	other := as(t, s.Config().ConnString(), role)
	if get[bool](other, "SELECT connector.dlq_discard($1::uuid)", ids[0]) || get[int](other, "SELECT connector.dlq_replayed($1::uuid[])", ids) != 0 {
		t.Error("another tenant closed it")
	}
}

// In psql an id is a bare literal; between uuid and uuid[] PostgreSQL could not choose.
func TestALetterIsNamedByABareLiteral(t *testing.T) {
	s, _ := stage(t)
	ids := letters(t, s, s.run("skip"), 3)
	for _, call := range []string{"dlq_discard", "dlq_replayed"} {
		if !get[bool](s, "SELECT connector."+call+"('"+ids[0].String()+"')") {
			t.Errorf("%s closed nothing", call)
		}
		ids = ids[1:]
		s.fails("22023", "SELECT connector."+call+"('seven')")
	}
	s.fails("22023", "SELECT connector.dlq_retry('seven')")
	s.fails("55000", "SELECT connector.dlq_retry('"+ids[0].String()+"')") // it keeps no bytes
}

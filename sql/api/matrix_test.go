package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A word of the matrix: ok (an answer), none (no row, null, false or 0), or the SQLSTATE of a refusal.

// callers are the columns of the matrix of functions: who asks for what is tenant 7's. The stranger, who holds nothing, is
// refused everything and stands in no column.
var callers = strings.Fields("seven reader scoped set unset eight")

// functions is who may call what. Arguments name things of tenant 7: %r is its active run, %e an ended one, %d an open letter.
// scoped is a role that connector.scope_roles lets in and nothing else; set and unset are operators whom tenant_roles does
// not list, with app.current_tenant = 7 and without, in a database that has other tenants.
var functions = map[string]struct{ call, words string }{
	"adopt()":      {"SELECT connector.adopt()", "none 42501 42501 none none none"},
	"apply(jsonb)": {"SELECT name FROM connector.apply('" + strings.Replace(document, `"acme"`, `"seven"`, 1) + "')", "55000 42501 42501 55000 42501 42501"},
	"cancel(uuid)": {"SELECT connector.cancel('%r')", "ok 42501 42501 ok P0002 P0002"},
	"card(text)":   {"SELECT connector.card('billing7')", "ok ok ok ok P0002 P0002"},
	"cron_next(text,timestamp with time zone)": {"SELECT connector.cron_next('* * * * *', now())", "ok ok 42501 ok ok ok"},
	"current_tenant()":                         {"SELECT connector.current_tenant()", "ok ok ok ok none ok"},
	"describe(text)":                           {"SELECT key FROM connector.describe()", "ok ok 42501 ok ok ok"},
	"dlq_discard(text)":                        {"SELECT connector.dlq_discard('%d')", "ok 42501 42501 ok none none"},
	"dlq_discard(uuid)":                        {"SELECT connector.dlq_discard('%d'::uuid)", "ok 42501 42501 ok none none"},
	"dlq_discard(uuid[])":                      {"SELECT connector.dlq_discard(ARRAY['%d'::uuid])", "ok 42501 42501 ok none none"},
	"dlq_replayed(text)":                       {"SELECT connector.dlq_replayed('%d')", "ok 42501 42501 ok none none"},
	"dlq_replayed(uuid)":                       {"SELECT connector.dlq_replayed('%d'::uuid)", "ok 42501 42501 ok none none"},
	"dlq_replayed(uuid[])":                     {"SELECT connector.dlq_replayed(ARRAY['%d'::uuid])", "ok 42501 42501 ok none none"},
	"dlq_retry(text)":                          {"SELECT connector.dlq_retry('%d')", "55000 42501 42501 55000 P0002 P0002"},
	"dlq_retry(uuid)":                          {"SELECT connector.dlq_retry('%d'::uuid)", "55000 42501 42501 55000 P0002 P0002"},
	"dlq_retry(uuid[])":                        {"SELECT connector.dlq_retry(ARRAY['%d'::uuid])", "55000 42501 42501 55000 P0002 P0002"},
	"drop(text,boolean)":                       {"SELECT connector.drop('seven') IS NOT NULL", "ok 42501 42501 ok P0002 P0002"},
	"get(text)":                                {"SELECT connector.get('seven')", "ok ok 42501 ok P0002 P0002"},
	"reset_cursor(text)":                       {"SELECT connector.reset_cursor('seven')", "55006 42501 42501 55006 P0002 P0002"},
	"run(text,text)":                           {"SELECT connector.run('seven')", "ok 42501 42501 ok P0002 P0002"},
	"run_on_change()":                          {"CREATE TEMP TABLE mine (); CREATE TRIGGER t AFTER INSERT ON mine FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change('seven'); INSERT INTO mine DEFAULT VALUES; SELECT 1", "ok 42501 42501 ok ok P0002"},
	"seal_key()":                               {"SELECT connector.seal_key()", "none 42501 42501 none none none"},
	"secret_drop(text)":                        {"SELECT connector.secret_drop('SEVEN')", "ok 42501 42501 ok 42501 P0002"},
	"secret_set(text,text)":                    {"SELECT connector.secret_set('SEVEN', 'x')", "55000 42501 42501 55000 42501 55000"},
	"seek(text,integer,bigint)":                {"SELECT connector.seek('seven', 0, 1)", "55006 42501 42501 55006 P0002 P0002"},
	"seek(text,timestamp with time zone)":      {"SELECT connector.seek('seven', now())", "55006 42501 42501 55006 P0002 P0002"},
	"trace(text,integer,bigint)":               {"SELECT outcome FROM connector.trace('seven', 0, 0)", "ok ok 42501 ok P0002 P0002"},
	"validate(jsonb)":                          {"SELECT severity FROM connector.validate('{}')", "ok ok 42501 ok ok ok"},
	"verify(boolean)":                          {"SELECT identity FROM connector.verify() WHERE connector = 'seven'", "ok ok 42501 ok none none"},
	"wait(uuid,interval)":                      {"SELECT run_id FROM connector.wait('%e')", "ok ok 42501 ok P0002 P0002"},
	"catch_up":                                 {"CALL connector.catch_up('nobody')", "P0002 42501 42501 P0002 P0002 P0002"},
}

// relations is what a relation shows of tenant 7 and to whom: tenant (its operators and readers, and nobody else), shared
// (what belongs to the server: every operator and reader) and closed (nobody).
var relations = map[string]string{
	"_audit": "tenant", "_column": "tenant", "_cursor": "tenant", "_dlq": "tenant", "_endpoint": "tenant", "_lag": "tenant", "_log": "tenant",
	"_run": "tenant", "_run_partition": "tenant", "_schedule": "tenant", "accounting": "tenant", "audit": "tenant", "catalog": "tenant",
	"connector_cursor": "tenant", "connectors": "tenant", "dlq": "tenant", "lag": "tenant", "log": "tenant", "manifest": "tenant", "progress": "tenant",
	"run_partitions": "tenant", "runs": "tenant", "scope_roles": "tenant", "_secret": "tenant", "secrets": "tenant",
	"_sidecar": "shared", "sidecars": "shared",
	"_installation": "closed", "_leader": "closed", "_migration": "closed", "_repeatable": "closed", "_retry": "closed", "_scope_grant": "closed",
	"_scope_reach": "closed", "_seal_key": "closed", "_secret_value": "closed", "tenant_roles": "closed",
}

// theMatrix sets two tenants up alike, each with something in every relation, and gives a session for each caller and the
// stranger, and what %r, %e and %d stand for.
func theMatrix(t *testing.T) (admin *session, who map[string]*session, stand *strings.Replacer) {
	t.Helper()
	admin, seven, eight, reader, stranger := tenants(t)
	url := admin.Config().ConnString()
	scoped, operator := newRole(t, admin), newRole(t, admin, "highwater_operator")
	who = map[string]*session{
		"seven": seven, "eight": eight, "reader": reader, "stranger": stranger,
		"scoped": as(t, url, scoped), "set": as(t, url, operator), "unset": as(t, url, operator),
	}
	who["set"].must("SET app.current_tenant = '7'")
	for _, s := range []*session{seven, eight} {
		s.must(`UPDATE connector.manifest SET scopes = ARRAY['billing' || tenant_id], spec = spec || '{"schedule": "0 3 1 1 *"}'`)
	}
	seven.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing7', $1)", scoped)
	eight.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing8', $1)", operator)
	who["scoped"].must("SET app.current_tenant = '7'")
	w := newWorker(t, url, "one")
	w.beat()
	var running, ended string
	for _, name := range []string{"eight", "seven"} {
		ended = ledger(admin, name, "Completed")
		admin.must("UPDATE connector._run SET ended_at = now() WHERE run_id = $1", ended)
		made(admin, name)
		run := get[uuid.UUID](map[string]*session{"seven": seven, "eight": eight}[name], "SELECT connector.run($1)", name)
		running = run.String()
		fence := w.take(run)
		w.plan(run, fence, span{Target: 5, HighWatermark: 9})
		w.must("SELECT connector._say($1, 'INFO', 'hello')", run)
		w.advance(run, fence, advance{To: 2, DeadLetters: 2}) // one letter only: connector.verify() has something to say
		letters(t, admin, run, 1)
		admin.must("SELECT connector._audit('seek', connector, tenant_id) FROM connector._run WHERE run_id = $1", run)
		admin.must("INSERT INTO connector._column (connector_id, column_name, tenant_id, field, data_type) SELECT connector_id, 'Name', tenant_id, 'Name', 'text' FROM connector._endpoint WHERE connector = $1", name)
		if get[bool](admin, "SELECT to_regclass('connector._secret') IS NOT NULL") {
			admin.must("INSERT INTO connector._secret (tenant_id, name) SELECT tenant_id, upper($1) FROM connector._endpoint WHERE connector = $1", name)
		}
	}
	letter := get[uuid.UUID](admin, "SELECT id FROM connector._dlq WHERE connector = 'seven'")
	return admin, who, strings.NewReplacer("%r", running, "%e", ended, "%d", letter.String())
}

// word runs a call, takes back what it did, and says in a word how it went.
func (s *session) word(call string) string {
	s.tb.Helper()
	if !strings.HasPrefix(call, "CALL") {
		s.must("BEGIN")
		defer s.must("ROLLBACK")
	}
	results, err := s.PgConn().Exec(s.tb.Context(), call).ReadAll()
	if err != nil {
		return pgError(s.tb, err).Code
	}
	rows := results[len(results)-1].Rows
	if len(rows) == 0 || len(rows) == 1 && (rows[0][0] == nil || string(rows[0][0]) == "f" || string(rows[0][0]) == "0") {
		return "none"
	}
	return "ok"
}

func TestWhoMayCallEachFunction(t *testing.T) {
	admin, who, stand := theMatrix(t)
	names := get[[]string](admin, `SELECT array_agg(CASE p.prokind WHEN 'p' THEN p.proname ELSE replace(p.oid::regprocedure::text, 'connector.', '') END ORDER BY 1)
		FROM pg_proc AS p WHERE p.pronamespace = 'connector'::regnamespace AND p.proname NOT LIKE '\_%'`)
	for _, name := range names {
		name = strings.ReplaceAll(name, `"`, "")
		f, ok := functions[name]
		if !ok {
			t.Errorf("connector.%s is new: say in this test who may call it, and what another tenant is told", name)
			continue
		}
		var got []string
		for _, c := range callers {
			got = append(got, who[c].word(stand.Replace(f.call)))
		}
		if words := strings.Join(got, " "); words != f.words {
			t.Errorf("%s:\n     %s\n got %s\nwant %s", name, strings.Join(callers, " "), words, f.words)
		}
		if got := who["stranger"].word(stand.Replace(f.call)); got != "42501" {
			t.Errorf("%s by a stranger: %s", name, got)
		}
	}
}

func TestWhoSeesWhatOfATenant(t *testing.T) {
	admin, who, _ := theMatrix(t)
	// The marks are read by somebody who sees all, so that a caller who sees too much is found out.
	mark := func(name string, tenant int) string {
		ids := get[string](admin, `SELECT string_agg(id, '|') FROM (SELECT run_id::text AS id FROM connector._run WHERE connector = $1
			UNION ALL SELECT connector_id::text FROM connector.manifest WHERE name = $1) AS i`, name)
		return fmt.Sprintf("%s|%s|billing%d", name, ids, tenant)
	}
	sevens, eights := mark("seven", 7), mark("eight", 8)
	for _, name := range get[[]string](admin, `SELECT array_agg(c.relname::text ORDER BY 1) FROM pg_class AS c
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname NOT LIKE 't\_%' OR c.oid = 'connector.tenant_roles'::regclass`) {
		kind, ok := relations[name]
		if !ok {
			t.Errorf("connector.%s is new: say in this test who sees what in it", name)
			continue
		}
		for caller, s := range who {
			var got string
			err := s.QueryRow(t.Context(), "SELECT count(*) FILTER (WHERE v::text ~* $1)::int || ' ' || count(*) FILTER (WHERE v::text ~* $2)::int FROM connector."+name+" AS v", sevens, eights).Scan(&got)
			if err != nil {
				got = pgError(t, err).Code
			}
			if want := seen(kind, caller); !slices.Contains(want, sign(got)) {
				t.Errorf("connector.%s to %s: %s, want %v", name, caller, got, want)
			}
		}
	}
}

// sign makes counts of rows of tenants 7 and 8 a pair of + and 0.
func sign(counts string) string {
	seven, eight, isPair := strings.Cut(counts, " ")
	if !isPair {
		return counts
	}
	out := ""
	for _, n := range []string{seven, eight} {
		if n != "0" {
			n = "+"
		}
		out += n
	}
	return out
}

// seen is what a caller may see in a relation of a kind.
func seen(kind, caller string) []string {
	switch {
	case kind == "closed" || caller == "stranger" || caller == "scoped":
		return []string{"42501"}
	case kind == "shared" || caller == "unset":
		return []string{"00"}
	case caller == "eight":
		return []string{"0+"}
	}
	return []string{"+0"}
}

// What a role changes in the tables that it may write is of its own tenant; and whatever else it tries is refused.
func TestNobodyWritesAnotherTenantsRows(t *testing.T) {
	admin, who, _ := theMatrix(t)
	for _, statement := range []string{
		"DELETE FROM connector.manifest WHERE name = 'seven'", "UPDATE connector.manifest SET scopes = '{x}' WHERE name = 'seven'",
		"DELETE FROM connector.scope_roles WHERE scope = 'billing7'", "UPDATE connector.scope_roles SET role = 'postgres' WHERE scope = 'billing7'",
	} {
		for _, c := range []string{"eight", "unset"} {
			tag, err := who[c].Exec(t.Context(), statement)
			if err != nil || tag.RowsAffected() != 0 {
				t.Errorf("%s by %s: %v, %v", statement, c, tag, err)
			}
		}
		for _, c := range []string{"reader", "scoped", "stranger"} {
			who[c].fails("42501", statement)
		}
	}
	writes := map[string]string{
		"manifest":    "INSERT INTO connector.manifest (name, tenant_id, spec) VALUES ('more', 7, '" + strings.Replace(least, "partners", "more", 1) + "')",
		"scope_roles": "INSERT INTO connector.scope_roles (scope, role, tenant_id) VALUES ('billing7', 'postgres', 7)",
	}
	for _, table := range slices.Sorted(maps.Keys(writes)) {
		for _, c := range []string{"eight", "unset", "reader", "scoped", "stranger"} {
			who[c].fails("42501", writes[table])
		}
	}
	if got := get[string](admin, "SELECT concat_ws(' ', (SELECT count(*) FROM connector.manifest), (SELECT scopes FROM connector.manifest WHERE name = 'seven'), (SELECT count(*) FROM connector.scope_roles))"); got != "2 {billing7} 2" {
		t.Errorf("left: %s", got)
	}
}

package api_test

import (
	"strings"
	"sync"
	"testing"

	"highwater/sidecar/seal"
	"highwater/tests/harness"
)

var sealKey = sync.OnceValues(func() (*seal.Key, error) { return seal.Generate() })

// keyed makes the database's key, as its first sidecar would.
func keyed(t *testing.T, admin *session) *seal.Key {
	t.Helper()
	k, err := sealKey()
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	admin.must("INSERT INTO connector._seal_key (fingerprint, key_id, public_key, made_by) VALUES ($1, $2, $3, 'test')", k.Fingerprint(), k.ID(), b)
	return k
}

// opened gives what a tenant's secret holds.
func opened(t *testing.T, admin *session, k *seal.Key, tenant int64, name string) string {
	t.Helper()
	v, err := k.Open(seal.Name{Tenant: tenant, Name: name}, get[[]byte](admin, "SELECT sealed FROM connector._secret_value WHERE tenant_id = $1 AND name = $2", tenant, name))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const awkward = "it's \\ \"quoted\" $$ %s\nnext line\t密码 "

func TestAPlainSecretIsSealedInTheServer(t *testing.T) {
	admin, seven, _, _, _ := tenants(t)
	k := keyed(t, admin)
	admin.must("CREATE SCHEMA far; CREATE EXTENSION pgcrypto SCHEMA far") // not on anybody's path, nor granted by name
	admin.must("GRANT USAGE ON SCHEMA far TO highwater_owner")
	for name, value := range map[string]string{"ACME_KAFKA_PW": awkward, "a/b.c-d_e": strings.Repeat("x", seal.MaxValue), strings.Repeat("n", 128): "x"} {
		seven.warnings()
		seven.must("SELECT connector.secret_set($1, $2)", name, value)
		if got := opened(t, admin, k, 7, name); got != value {
			t.Errorf("%.20s: %.40q came back as %.40q", name, value, got)
		}
		w := seven.warnings()
		if len(w) != 1 {
			t.Fatalf("%d warnings", len(w))
		}
		contains(t, "the warning", w[0].Message+w[0].Hint, name, "logged", "highwater seal")
		if len(value) > 1 && strings.Contains(w[0].Message+w[0].Detail+w[0].Hint, value) {
			t.Error("the warning shows the value")
		}
	}
	seven.must("SELECT connector.secret_set('ACME_KAFKA_PW', 'another')")
	if got := opened(t, admin, k, 7, "ACME_KAFKA_PW"); got != "another" {
		t.Errorf("set again: %q", got)
	}
	if got := get[string](seven, "SELECT count(*) || ' ' || min(tenant_id) || ' ' || bool_and(updated_at > now() - interval '1 minute') FROM connector.secrets"); got != "3 7 true" {
		t.Errorf("listed: %s", got)
	}
}

func TestASealedSecretNeedsNoExtension(t *testing.T) {
	admin, seven, _, _, _ := tenants(t)
	k := keyed(t, admin)
	for range 20 { // the message's length varies with the numbers in it
		sealed, err := k.Seal(seal.Name{Tenant: 7, Name: "PW"}, awkward)
		if err != nil {
			t.Fatal(err)
		}
		seven.must("SELECT connector.secret_set('PW', $1)", seal.Text(sealed))
		if got := opened(t, admin, k, 7, "PW"); got != awkward {
			t.Fatalf("came back as %q", got)
		}
	}
	if w := seven.warnings(); len(w) != 0 {
		t.Errorf("warned: %v", w[0].Message)
	}
	sealed, _ := k.Seal(seal.Name{Tenant: 7, Name: "PW"}, strings.Repeat("x", seal.MaxValue))
	seven.must("SELECT connector.secret_set('PW', $1)", seal.Text(sealed))
	pg := seven.fails("0A000", "SELECT connector.secret_set('PW', 'hunter2-plain')")
	contains(t, "the refusal", pg.Message+pg.Detail+pg.Hint, "pgcrypto", "highwater seal", "CREATE EXTENSION", "logged")
}

func TestWhatIsNoSecretIsRefused(t *testing.T) {
	admin, seven, _, _, _ := tenants(t)
	seven.fails("55000", "SELECT connector.secret_set('PW', 'hunter2-plain')")
	k := keyed(t, admin)
	admin.must("CREATE EXTENSION pgcrypto")
	sealed, err := k.Seal(seal.Name{Tenant: 7, Name: "PW"}, "hunter2-plain")
	if err != nil {
		t.Fatal(err)
	}
	other, err := seal.Generate()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Seal(seal.Name{Tenant: 7, Name: "PW"}, "hunter2-plain")
	if err != nil {
		t.Fatal(err)
	}
	text := seal.Text(sealed)
	for _, c := range []struct {
		what        string
		name, value any
		says        string
	}{
		{"no name", nil, "hunter2-plain", "name"},
		{"an empty name", "", "hunter2-plain", "name"},
		{"a name that may be the value", "hunter2-plain!", "x", "name"},
		{"a long name", strings.Repeat("n", 129), "hunter2-plain", "name"},
		{"a name with a new line", "PW\n", "hunter2-plain", "name"},
		{"no value", "PW", nil, "blank"},
		{"an empty value", "PW", "", "blank"},
		{"blanks", "PW", " \t\n ", "blank"},
		{"a value too long", "PW", strings.Repeat("hunter2-plain", 6000), "65536"},
		{"a prefix alone", "PW", "hwseal1:", "highwater seal"},
		{"a plain text behind the prefix", "PW", "hwseal1:hunter2-plain", "highwater seal"},
		{"one cut short", "PW", text[:400], "cut"},
		{"one with a new line", "PW", text[:100] + "\n" + text[100:], "cut"},
		{"base64 of something else", "PW", "hwseal1:" + strings.Repeat("AAAA", 200), "cut"},
		{"another key's", "PW", seal.Text(foreign), other.ID()},
	} {
		t.Run(c.what, func(t *testing.T) {
			pg := seven.fails("22023", "SELECT connector.secret_set($1, $2)", c.name, c.value)
			contains(t, "the refusal", pg.Message, c.says)
			if all := pg.Message + pg.Detail + pg.Hint + pg.Where; strings.Contains(all, "hunter2") || pg.Hint == "" {
				t.Errorf("shows the value or has no hint: %s", all)
			}
		})
	}
	seven.fails("22023", "SELECT connector.secret_drop('no name!')")
	if n := get[int](admin, "SELECT count(*) FROM connector._secret"); n != 0 {
		t.Errorf("%d were stored", n)
	}
}

func TestSecretsOfTenantsDoNotMeet(t *testing.T) {
	admin, seven, eight, reader, stranger := tenants(t)
	k := keyed(t, admin)
	admin.must("CREATE EXTENSION pgcrypto")
	seven.must("SELECT connector.secret_set('PW', 'of seven')")
	eight.must("SELECT connector.secret_set('PW', 'of eight')")
	eight.must("SELECT connector.secret_set('ONLY', 'of eight')")
	if a, b := opened(t, admin, k, 7, "PW"), opened(t, admin, k, 8, "PW"); a != "of seven" || b != "of eight" {
		t.Errorf("%q, %q", a, b)
	}
	for _, s := range []*session{seven, reader} {
		if got := get[string](s, "SELECT string_agg(name || tenant_id, ' ') FROM connector.secrets"); got != "PW7" {
			t.Errorf("sees %s", got)
		}
	}
	known, unknown := seven.fails("P0002", "SELECT connector.secret_drop('ONLY')"), seven.fails("P0002", "SELECT connector.secret_drop('NONE')")
	if strings.ReplaceAll(known.Message, "ONLY", "NONE") != unknown.Message || known.Hint != unknown.Hint {
		t.Errorf("another tenant's name is answered with %q, an unknown one with %q", known.Message, unknown.Message)
	}
	for _, s := range []*session{reader, stranger} {
		s.fails("42501", "SELECT connector.secret_set('PW', 'x')")
		s.fails("42501", "SELECT connector.secret_drop('PW')")
		s.fails("42501", "SELECT * FROM connector.seal_key()")
	}
	stranger.fails("42501", "SELECT * FROM connector.secrets")
	for _, s := range []*session{seven, eight, reader, stranger} {
		for _, sql := range []string{"SELECT sealed FROM connector._secret_value", "SELECT * FROM connector._seal_key", "DELETE FROM connector._secret", "SELECT connector._seal('', '', '')"} {
			s.fails("42501", sql)
		}
	}
	seven.must("SELECT connector.secret_drop('PW')")
	if got := get[string](admin, "SELECT string_agg(name || tenant_id, ' ' ORDER BY name) FROM connector._secret_value"); got != "ONLY8 PW8" {
		t.Errorf("left: %s", got)
	}
	nobody := as(t, admin.Config().ConnString(), newRole(t, admin, "highwater_operator"))
	nobody.fails("42501", "SELECT connector.secret_set('PW', 'x')")
}

func TestTheAuditOfSecretsHasNoValue(t *testing.T) {
	admin, seven, _, _, _ := tenants(t)
	keyed(t, admin)
	admin.must("CREATE EXTENSION pgcrypto")
	seven.must("SELECT connector.secret_set('PW', 'hunter2-plain')")
	seven.must("SELECT connector.secret_drop('PW')")
	if got := get[string](seven, "SELECT string_agg(action || ' ' || detail::text, '; ' ORDER BY at) FROM connector.audit WHERE action LIKE 'secret%'"); got !=
		`secret_set {"name": "PW", "came_sealed": false}; secret_drop {"name": "PW"}` {
		t.Errorf("recorded: %s", got)
	}
}

// Only the extension's own C function may see a value: anything else of that name could be somebody's to read it with.
func TestNoFunctionInPgcryptosPlaceSeesAValue(t *testing.T) {
	url := harness.Database(t)
	admin := connect(t, url)
	keyed(t, admin)
	role := newRole(t, admin, "highwater_operator")
	admin.must("CREATE SCHEMA mallory; GRANT ALL ON SCHEMA mallory TO PUBLIC")
	admin.must(`CREATE FUNCTION mallory.pgp_pub_encrypt_bytea(bytea, bytea, text) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'mallory has %', convert_from($1, 'UTF8'); END $$`)
	s := as(t, url, role)
	s.must("SET search_path = mallory, public")
	s.fails("0A000", "SELECT connector.secret_set('PW', 'hunter2-plain')")
	admin.must("CREATE EXTENSION pgcrypto; ALTER EXTENSION pgcrypto ADD FUNCTION mallory.pgp_pub_encrypt_bytea(bytea, bytea, text)")
	s.must("SELECT connector.secret_set('PW', 'hunter2-plain')")
}

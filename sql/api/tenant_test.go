package api_test

import (
	"testing"

	"highwater/tests/harness"
)

// As spec 1.9 says: the listed role, else the setting, else 1 while nobody else is there, else nothing.
func TestCurrentTenant(t *testing.T) {
	url := harness.Database(t)
	admin := connect(t, url)
	role := newRole(t, admin)
	admin.must("GRANT USAGE ON SCHEMA connector TO " + role)
	s := as(t, url, role)
	tenant := func(t *testing.T, want any) {
		t.Helper()
		got := get[*int64](s, "SELECT connector.current_tenant()")
		if (got == nil) != (want == nil) || (got != nil && *got != int64(want.(int))) {
			t.Errorf("tenant %v, want %v", got, want)
		}
	}

	t.Run("is 1 while there is no other", func(t *testing.T) { tenant(t, 1) })
	t.Run("an empty setting is none", func(t *testing.T) {
		s.must("SET app.current_tenant = ''")
		tenant(t, 1)
	})
	t.Run("the setting counts", func(t *testing.T) {
		s.must("SET app.current_tenant = '7'")
		tenant(t, 7)
	})
	t.Run("a setting that is no bigint sees nothing", func(t *testing.T) {
		for _, bad := range []string{"x", "1x", "1.5", "9223372036854775808", "99999999999999999999", "1e3", "0x1", "1 2", "ー1"} {
			s.must("SELECT set_config('app.current_tenant', $1, false)", bad)
			tenant(t, nil)
		}
	})
	t.Run("the greatest bigint is one", func(t *testing.T) {
		s.must("SET app.current_tenant = '9223372036854775807'")
		tenant(t, 9223372036854775807)
		s.must("RESET app.current_tenant")
	})
	t.Run("a listed role of tenant 1 is no other tenant", func(t *testing.T) {
		admin.must("INSERT INTO connector.tenant_roles VALUES ('somebody', 1)")
		tenant(t, 1)
	})
	t.Run("without a setting nothing once there is another", func(t *testing.T) {
		admin.must("INSERT INTO connector.tenant_roles VALUES ('somebody else', 2)")
		tenant(t, nil)
	})
	t.Run("a connector of another tenant counts too", func(t *testing.T) {
		admin.must("DELETE FROM connector.tenant_roles")
		admin.must("INSERT INTO connector.manifest (name, tenant_id, scopes, spec) VALUES ('other', 2, '{a}', $1)", least)
		tenant(t, nil)
		admin.must("DELETE FROM connector.manifest")
		tenant(t, 1)
	})
	t.Run("a listed role cannot change its tenant", func(t *testing.T) {
		admin.must("INSERT INTO connector.tenant_roles VALUES ($1, 3)", role)
		s.must("SET app.current_tenant = '1'")
		tenant(t, 3)
	})
}

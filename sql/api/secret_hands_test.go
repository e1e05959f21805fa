package api_test

import (
	"strings"
	"testing"
	"time"

	"highwater/sidecar/seal"
)

// A value that is being set while the key is replaced waits, and is then judged by the new key: no rotation misses one.
func TestASecretThatMeetsARotationIsJudgedByTheNewKey(t *testing.T) {
	admin, seven, _, _, _ := tenants(t)
	k := keyed(t, admin)
	sealed, err := k.Seal(seal.Name{Tenant: 7, Name: "PW"}, "hunter2")
	if err != nil {
		t.Fatal(err)
	}
	next, err := seal.Generate()
	if err != nil {
		t.Fatal(err)
	}
	b, err := next.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	rotation := connect(t, admin.Config().ConnString())
	rotation.must("BEGIN")
	rotation.must("UPDATE connector._seal_key SET fingerprint = $1, key_id = $2, public_key = $3", next.Fingerprint(), next.ID(), b)
	done := make(chan error, 1)
	go func() {
		_, err := seven.Exec(t.Context(), "SELECT connector.secret_set('PW', $1)", seal.Text(sealed))
		done <- err
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for get[int](admin, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0 {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		case <-tick.C:
		}
	}
	rotation.must("COMMIT")
	if pg := pgError(t, <-done); pg.Code != "22023" || !strings.Contains(pg.Message, next.ID()) || !strings.Contains(pg.Message, k.ID()) {
		t.Errorf("%s %s", pg.Code, pg.Message)
	}
	if n := get[int](admin, "SELECT count(*) FROM connector._secret"); n != 0 {
		t.Errorf("%d stored", n)
	}
}

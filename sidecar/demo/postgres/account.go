package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"highwater/sidecar/demo/cache"
)

// account is the user that the server runs as when this process is root, whom initdb and postgres refuse.
type account struct {
	name     string
	uid, gid uint32
}

// findAccount returns nil for an ordinary user, who runs the server as it is, and for root the user postgres, else nobody.
func findAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // no account is a good answer here: every method takes a nil receiver
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(found.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(found.Gid, 10, 32)
		if errUID == nil && errGID == nil {
			return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and neither user postgres nor user nobody exists: run as an ordinary user")
}

// credential is what the child's start needs; nil keeps our own user.
func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// own gives a folder or file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("giving %s to user %s: %w", path, a.name, err)
	}
	return nil
}

// canReach refuses a folder that the account cannot enter; the server's own message for that names no cause.
func (a *account) canReach(path string) error {
	if a == nil {
		return nil
	}
	if closed := cache.Reachable(path, a.uid, a.gid); closed != "" {
		return fmt.Errorf("PostgreSQL runs as user %s, who cannot enter %s (on the way to %s): choose another folder or run as an ordinary user",
			a.name, closed, path)
	}
	return nil
}

//go:build !linux

package child

import "syscall"

// attributes is the portable part of the Linux form: no signal follows the death of this process.
func attributes(spec Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: spec.Credential}
}

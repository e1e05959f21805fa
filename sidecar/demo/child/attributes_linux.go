package child

import "syscall"

// attributes puts the child into a process group of its own, so that Ctrl-C in a terminal reaches this process alone
// and the children are stopped in order.
func attributes(spec Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: spec.Death, Credential: spec.Credential}
}

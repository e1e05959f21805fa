// Package child runs a server program (PostgreSQL, a Kafka broker) as a child that never outlives this process.
//
// The kernel signals the child when the thread that started it ends, so a kill -9 of this process stops the child too.
// That is why each child has a goroutine of its own, locked to its thread, which stays until the child has ended.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Spec says what to run and how.
type Spec struct {
	Path string   // program, absolute
	Args []string // arguments, without the program's name
	Dir  string   // working folder
	Env  []string // environment; nil takes this process's own
	Log  *os.File // receives standard output and standard error; must stay open until Start returns

	// Death is the signal that the child gets when this process dies.
	// It is sent on Linux only: elsewhere a kill -9 of this process leaves the child running.
	Death syscall.Signal

	// Credential is the user to run as; nil keeps this process's own.
	Credential *syscall.Credential
}

// Process is a started child.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // set before exited is closed
}

// Start runs the program and returns once it runs; it fails when the program cannot be run at all.
func Start(spec Spec) (*Process, error) {
	//nolint:noctx // the child lives until it is signalled, not as long as the call that made it
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir = spec.Dir
	cmd.Env = spec.Env
	cmd.Stdout = spec.Log
	cmd.Stderr = spec.Log
	cmd.SysProcAttr = attributes(spec)

	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Path, err)
	}
	return p, nil
}

// run holds the thread from the start of the child to its end and never unlocks it, so the thread ends with the goroutine.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.exited)
}

// PID is the process id of the child.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the child has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err is how the child ended: nil for exit status 0. It is meaningful once Exited is closed.
func (p *Process) Err() error {
	select {
	case <-p.exited:
		return p.err
	default:
		return nil
	}
}

// Signal sends a signal to the child; a child that has ended already is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to process %d: %w", sig, p.PID(), err)
	}
	return nil
}

// Step is one rung of Stop: a signal, and how long the child may take to obey it.
type Step struct {
	Signal syscall.Signal
	Wait   time.Duration
}

// Stop sends the signals in turn until the child has ended, and SIGKILL after the last one.
func (p *Process) Stop(steps ...Step) error {
	for _, step := range steps {
		if err := p.Signal(step.Signal); err != nil {
			return err
		}
		timer := time.NewTimer(step.Wait)
		select {
		case <-p.exited:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

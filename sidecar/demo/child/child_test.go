package child_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"highwater/sidecar/demo/child"
)

// parentVariable turns the test binary into a parent that starts a child and waits to be killed.
const parentVariable = "HIGHWATER_TEST_CHILD_PARENT"

// obeyWait is ample for a process that obeys at once.
const obeyWait = 10 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		parent()
	}
	os.Exit(m.Run())
}

// parent starts a child whose end closes our standard output's other holder, tells its id, and never ends by itself.
func parent() {
	p, err := child.Start(child.Spec{Path: "/bin/sleep", Args: []string{"600"}, Log: os.Stdout, Death: syscall.SIGTERM})
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(p.PID()) + "\n")
	select {}
}

// sh starts a shell script as a child that is gone when the test ends; its output can be read line by line.
func sh(t *testing.T, script string) (*child.Process, *bufio.Scanner) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Start(child.Spec{Path: "/bin/sh", Args: []string{"-c", script}, Log: write})
	if err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(func() {
		_ = p.Stop()
		_ = read.Close()
	})
	return p, bufio.NewScanner(read)
}

func TestAProgramThatCannotRunIsNamed(t *testing.T) {
	if _, err := child.Start(child.Spec{Path: "/nowhere/at/all"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that it does not exist", err)
	}
}

func TestTheEndIsTold(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7} {
		p, _ := sh(t, script)
		<-p.Exited()
		code := 0
		var exit *exec.ExitError
		if errors.As(p.Err(), &exit) {
			code = exit.ExitCode()
		}
		if code != want {
			t.Errorf("%s: %v, want status %d", script, p.Err(), want)
		}
	}
}

func TestStopGoesFromOneSignalToTheNext(t *testing.T) {
	const short = 50 * time.Millisecond
	for _, c := range []struct {
		name, script string
		steps        []child.Step
		by           syscall.Signal
	}{
		{"obeys the first", "echo ready; exec sleep 600", []child.Step{{syscall.SIGTERM, obeyWait}, {syscall.SIGINT, obeyWait}}, syscall.SIGTERM},
		{"obeys the second", "trap '' TERM; echo ready; exec sleep 600", []child.Step{{syscall.SIGTERM, short}, {syscall.SIGINT, obeyWait}}, syscall.SIGINT},
		{"obeys none", "trap '' TERM INT; echo ready; exec sleep 600", []child.Step{{syscall.SIGTERM, short}, {syscall.SIGINT, short}}, syscall.SIGKILL},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, out := sh(t, c.script)
			if !out.Scan() {
				t.Fatal("the child said nothing")
			}
			if err := p.Stop(c.steps...); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if !errors.As(p.Err(), &exit) || exit.Sys().(syscall.WaitStatus).Signal() != c.by {
				t.Errorf("ended by %v, want %v", p.Err(), c.by)
			}
			if err := p.Signal(syscall.SIGTERM); err != nil {
				t.Errorf("a signal to one that has ended: %v", err)
			}
		})
	}
}

// Ctrl-C in a terminal goes to the group of the foreground: the child is in one of its own.
func TestAChildLeadsAGroupOfItsOwn(t *testing.T) {
	p, out := sh(t, "echo ready; exec sleep 600")
	out.Scan()
	if group, err := syscall.Getpgid(p.PID()); err != nil || group != p.PID() {
		t.Errorf("group %d, %v, want %d", group, err, p.PID())
	}
}

// The pipe to the parent's output is held by the parent and the child: it ends when both are gone, however many threads and
// garbage collections the parent has been through.
func TestAChildEndsWithAKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), parentVariable+"=1")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	out := bufio.NewScanner(read)
	if !out.Scan() {
		t.Fatal("the parent said nothing")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := read.SetReadDeadline(time.Now().Add(obeyWait)); err != nil {
		t.Fatal(err)
	}
	if out.Scan() || out.Err() != nil {
		t.Errorf("child %s lives on: %v", out.Text(), out.Err())
	}
}

package postgres

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// parentVariable turns the test binary into a parent that starts a server in the named folder and waits to be killed.
const parentVariable = "HIGHWATER_TEST_POSTGRES_PARENT"

var quick = map[string]string{"fsync": "off", "max_connections": "20", "shared_buffers": "16MB"}

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		parent(dir)
		return
	}
	os.Exit(m.Run())
}

// parent prints the server's URL and then never ends by itself.
func parent(dir string) {
	server, err := Start(context.Background(), Options{Dir: dir, Settings: quick})
	if err != nil {
		os.Stdout.WriteString("error: " + err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString(server.URL("postgres") + "\n")
	select {}
}

func start(t *testing.T, options Options) *Server {
	t.Helper()
	options.Settings = quick
	server, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// openDir is a temporary folder that the server's user can reach; t.TempDir is closed to others.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "highwater-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "server")
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func text(t *testing.T, conn *pgx.Conn, query string) (value string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestStartServesUTF8OnLoopbackOnlyWithTheGivenSettings(t *testing.T) {
	server := start(t, Options{})
	conn := connect(t, server.URL("postgres"))
	for query, want := range map[string]string{
		"SHOW server_encoding":                          "UTF8",
		"SHOW listen_addresses":                         "127.0.0.1",
		"SHOW unix_socket_directories":                  "",
		"SHOW fsync":                                    "off",
		"SELECT current_user":                           "postgres",
		"SELECT ('a' < 'B' COLLATE \"C\")::text":        "false",
		"SELECT (lower('Ä' COLLATE \"C\"))::text":       "Ä",
		"SELECT (inet_server_addr() <<= '127/8')::text": "true",
	} {
		if got := text(t, conn, query); got != want {
			t.Errorf("%s = %q, want %q", query, got, want)
		}
	}
}

func TestStopEndsTheServerAndRemovesItsTemporaryFolder(t *testing.T) {
	server := start(t, Options{})
	dir, url := server.dir, server.URL("postgres")
	server.Stop()
	server.Stop()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s is still there: %v", dir, err)
	}
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the server still answers")
	}
}

func TestAGivenFolderIsKeptAndServedAgain(t *testing.T) {
	dir := openDir(t)
	first := start(t, Options{Dir: dir})
	if _, err := connect(t, first.URL("postgres")).Exec(t.Context(), "CREATE TABLE kept AS SELECT 'yes' AS value"); err != nil {
		t.Fatal(err)
	}
	first.Stop()
	second := start(t, Options{Dir: dir})
	if got := text(t, connect(t, second.URL("postgres")), "SELECT value FROM kept"); got != "yes" {
		t.Errorf("kept value %q", got)
	}
}

func TestRestartKeepsPortAndData(t *testing.T) {
	server := start(t, Options{})
	if _, err := connect(t, server.URL("postgres")).Exec(t.Context(), "CREATE TABLE kept AS SELECT 'yes' AS value"); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]Mode{"fast": Fast, "immediate": Immediate, "sigkill": Sigkill} {
		pid, url := server.PID(), server.URL("postgres")
		if err := server.Restart(t.Context(), mode); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if server.PID() == pid || server.URL("postgres") != url {
			t.Errorf("%s: pid %d → %d, url %s → %s", name, pid, server.PID(), url, server.URL("postgres"))
		}
		if got := text(t, connect(t, url), "SELECT value FROM kept"); got != "yes" {
			t.Errorf("%s: kept value %q", name, got)
		}
	}
}

func TestTheServerEndsCleanlyWhenItsParentIsKilled(t *testing.T) {
	dir := openDir(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+dir)
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parent.Process.Kill() })
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		t.Fatal("the parent printed no URL")
	}
	conn := connect(t, lines.Text())

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()

	// Our connection is told of the shutdown: this is the signal that the orphan is going.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = conn.WaitForNotification(ctx)
	var told *pgconn.PgError
	if !errors.As(err, &told) || told.Code != "57P01" {
		t.Fatalf("the connection ended with %v, want admin shutdown (57P01)", err)
	}
	// The folder can be served again only when no process of the first server holds it.
	again := start(t, Options{Dir: dir})
	if got := text(t, connect(t, again.URL("postgres")), "SELECT 'here'"); got != "here" {
		t.Errorf("got %q", got)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = Start(t.Context(), Options{Port: listener.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, ErrPortTaken) {
		t.Errorf("error %v, want ErrPortTaken", err)
	}
}

func TestABadSettingIsReportedWithTheServersOwnWords(t *testing.T) {
	_, err := Start(t.Context(), Options{Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !contains(err.Error(), "no_such_setting") {
		t.Errorf("error %v, want the setting named", err)
	}
}

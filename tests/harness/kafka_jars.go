package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"highwater/sidecar/demo/cache"
	"highwater/sidecar/demo/child"
)

// fetchWait bounds how long Maven may take for a release it does not hold yet, about 150 MB.
const fetchWait = 10 * time.Minute

// copyJars is the Maven goal that puts all that a pom depends on into a folder.
const copyJars = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// missingError says that this machine lacks a program, which leaves out the tests on Apache Kafka.
type missingError struct{ program string }

func (e *missingError) Error() string {
	return e.program + " is not on the PATH: install " + map[string]string{"java": "Java 17 or newer", "mvn": "Maven"}[e.program]
}

// findProgram gives the absolute path of a program, or a [*missingError].
func findProgram(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err != nil {
		return "", &missingError{program: name}
	}
	return filepath.Abs(found)
}

// release is how Apache Kafka names its releases; the name becomes a part of a path.
var release = regexp.MustCompile(`^[34](\.[0-9]+){2}$`)

// kafkaJars gives the folder of a release's jars, which Maven fetches once for all test processes of the machine.
func kafkaJars(ctx context.Context, version string) (string, error) {
	if !release.MatchString(version) {
		return "", fmt.Errorf("version %q: want a release of Apache Kafka such as %s; 3.9 is the oldest that is tried", version, defaultKafka)
	}
	dir, err := cache.Folder("kafka-"+version, func(dir string) error { return fetchJars(ctx, version, dir) })
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "jars"), nil
}

func fetchJars(ctx context.Context, version, dir string) error {
	mvn, err := findProgram("mvn")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom(version)), 0o644); err != nil {
		return fmt.Errorf("writing the pom: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	return run(ctx, filepath.Join(dir, "mvn.log"), child.Spec{
		Path: mvn,
		Args: []string{"--batch-mode", "--quiet", copyJars, "-DincludeScope=runtime", "-DoutputDirectory=" + filepath.Join(dir, "jars")},
		Dir:  dir,
	})
}

// pom names the broker and what it logs with. The broker itself brings the API only.
func pom(version string) string {
	var text strings.Builder
	text.WriteString("<project>\n<modelVersion>4.0.0</modelVersion>\n")
	text.WriteString("<groupId>highwater.tests</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>\n<dependencies>\n")
	for _, dependency := range append(bindingOf(version).dependencies, "org.apache.kafka:kafka_2.13:"+version) {
		part := strings.Split(dependency, ":")
		fmt.Fprintf(&text, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", part[0], part[1], part[2])
	}
	text.WriteString("</dependencies>\n</project>\n")
	return text.String()
}

// binding is what a major of Apache Kafka logs with. Without one its log, and so the reason of a failed start, is lost.
type binding struct {
	dependencies []string // group:artifact:version; they come first in the pom, so that their versions win
	property     string   // names the settings' file to the JVM
	file         string
	settings     string
}

// bindingOf tells Log4j 1 (its maintained form reload4j, up to Kafka 3.9) from Log4j 2 (Kafka 4).
func bindingOf(version string) binding {
	if strings.HasPrefix(version, "3.") {
		return binding{
			dependencies: []string{"org.slf4j:slf4j-reload4j:1.7.36"},
			property:     "log4j.configuration",
			file:         "log4j.properties",
			settings: "log4j.rootLogger=WARN, out\n" +
				"log4j.appender.out=org.apache.log4j.ConsoleAppender\n" +
				"log4j.appender.out.layout=org.apache.log4j.PatternLayout\n" +
				"log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n\n",
		}
	}
	return binding{
		dependencies: []string{"org.apache.logging.log4j:log4j-slf4j-impl:2.25.4", "org.apache.logging.log4j:log4j-core:2.25.4"},
		property:     "log4j2.configurationFile",
		file:         "log4j2.properties",
		settings: "status=ERROR\n" +
			"appender.out.type=Console\nappender.out.name=out\n" +
			"appender.out.layout.type=PatternLayout\nappender.out.layout.pattern=%d %p %m (%c)%n\n" +
			"rootLogger.level=WARN\nrootLogger.appenderRef.out.ref=out\n",
	}
}

// run runs a program to its end, which the end of ctx or of this process hastens. What it wrote is part of the error.
func run(ctx context.Context, logPath string, spec child.Spec) error {
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("making a log: %w", err)
	}
	defer log.Close()
	spec.Log, spec.Death = log, syscall.SIGKILL
	process, err := child.Start(spec)
	if err != nil {
		return err
	}
	select {
	case <-process.Exited():
	case <-ctx.Done():
		err = errors.Join(context.Cause(ctx), process.Stop())
	}
	if err == nil {
		err = process.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(spec.Path), err, tail(logPath))
	}
	return nil
}

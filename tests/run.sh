#!/usr/bin/env bash
# Everything that is tested, as `make test` runs it: as root and as an ordinary user alike.
#
# HIGHWATER_REQUIRE_KAFKA=1 (set by CI) makes a missing real broker a failure instead of a loud omission.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=${CGO_ENABLED:-0}

missing=()
command -v java > /dev/null || missing+=("Java (java): no real Apache Kafka")
command -v mvn > /dev/null || missing+=("Maven (mvn): no real Apache Kafka")
command -v psql > /dev/null || missing+=("psql: no golden transcripts")
if [ ${#missing[@]} -gt 0 ]; then
  printf '%s\n' "##" "## LEFT OUT, because this machine lacks:" >&2
  printf '##   %s\n' "${missing[@]}" >&2
  printf '##\n' >&2
  if [ "${HIGHWATER_REQUIRE_KAFKA:-}" = 1 ]; then
    echo "HIGHWATER_REQUIRE_KAFKA=1 forbids leaving anything out" >&2
    exit 1
  fi
fi

go vet ./...
# Packages that start servers share two cores: two at a time, so that none waits for its own deadline.
go test -count=1 -p 2 -timeout 30m ./...

# The main job once more on the oldest Kafka that is supported; the run above had the newest.
if [ ${#missing[@]} -eq 0 ]; then
  HIGHWATER_TEST_KAFKA=${HIGHWATER_TEST_KAFKA_OLDEST:-3.9.2} go test -count=1 -timeout 10m -run 'TestDemoManifests/kafka|TestALogThatEndsWithoutARecord/.*/kafka' ./tests/e2e
fi

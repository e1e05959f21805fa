package api_test

import (
	"slices"
	"testing"

	"highwater/sql/table"
	"highwater/tests/harness"
)

func TestRulesOfColumns(t *testing.T) {
	checkRules(t, map[string]rule{
		"include all":                        {`{"include": ["topic", "partition", "offset", "timestamp", "key", "headers", "tombstone"]}`, ""},
		"include nothing":                    {`{"include": []}`, ""},
		"include what there is":              {`{"include": ["value", 1, null]}`, "ERROR spec.include; ERROR spec.include; ERROR spec.include"},
		"include once":                       {`{"include": ["key", "key"]}`, "ERROR spec.include"},
		"include is a list":                  {`{"include": "key"}`, "ERROR spec.include"},
		"rename":                             {`{"rename": {"id": "partner_id", "Partner Name": "naïve \"quoted\" Name"}}`, ""},
		"rename to itself":                   {`{"rename": {"a": "a"}}`, ""},
		"rename crosswise":                   {`{"rename": {"a": "b", "b": "a"}}`, ""},
		"rename to another case":             {`{"rename": {"a": "b", "c": "B"}}`, ""},
		"rename onto a system column":        {`{"rename": {"a": "tenant_id"}}`, "ERROR spec.rename"},
		"rename onto a column of PostgreSQL": {`{"rename": {"a": "ctid"}}`, "ERROR spec.rename"},
		"rename onto a transport column":     {`{"rename": {"a": "_offset"}}`, "ERROR spec.rename"},
		"rename two onto one":                {`{"rename": {"a": "c", "b": "c"}}`, "ERROR spec.rename"},
		"rename to nothing":                  {`{"rename": {"a": ""}}`, "ERROR spec.rename"},
		"rename from nothing":                {`{"rename": {"": "a"}}`, "ERROR spec.rename"},
		"rename to a number":                 {`{"rename": {"a": 1}}`, "ERROR spec.rename"},
		"rename to null":                     {`{"rename": {"a": null}}`, "ERROR spec.rename"},
		"rename is an object":                {`{"rename": [["a", "b"]]}`, "ERROR spec.rename"},
		"rename of what is excluded":         {`{"rename": {"a": "b"}, "exclude": ["a"]}`, "WARN spec.rename"},
		"rename of what is not landed":       {`{"rename": {"a": "b"}, "only": ["c"]}`, "WARN spec.rename"},
		"exclude":                            {`{"exclude": ["pii", "Ünïcode field"]}`, ""},
		"exclude in words":                   {`{"exclude": [1]}`, "ERROR spec.exclude"},
		"only":                               {`{"only": ["a"]}`, ""},
		"only nothing":                       {`{"only": []}`, "ERROR spec.only"},
		"only and exclude":                   {`{"only": ["a"], "exclude": ["b"]}`, "ERROR spec.only"},
		"types":                              {`{"types": {"a": "timestamptz", "b": "double precision", "c": "bytea", "d": "numeric(10,2)", "e": "numeric(1000, 1000)", "f": "numeric"}}`, ""},
		"types that are known":               {`{"types": {"a": "int", "b": "regclass", "c": "TEXT", "d": "text; DROP TABLE x"}}`, "ERROR spec.types; ERROR spec.types; ERROR spec.types; ERROR spec.types"},
		"types within numeric":               {`{"types": {"a": "numeric(1001,0)", "b": "numeric(2,3)", "c": "numeric(0,0)", "d": "numeric(5)", "e": "numeric(99999999999,2)"}}`, "ERROR spec.types; ERROR spec.types; ERROR spec.types; ERROR spec.types; ERROR spec.types"},
		"types in words":                     {`{"types": {"a": 1, "b": null, "": "text"}}`, "ERROR spec.types; ERROR spec.types; ERROR spec.types"},
		"layout document":                    {`{"layout": "document"}`, ""},
		"layout of two":                      {`{"layout": "rows"}`, "ERROR spec.layout"},
		"layout of raw":                      {`{"layout": "document", "format": "raw"}`, "ERROR spec.layout"},
		"document silences columns":          {`{"layout": "document", "rename": {"a": "b"}, "types": {}}`, "WARN spec.rename; WARN spec.types"},
		"raw silences columns":               {`{"format": "raw", "exclude": ["a"], "schema": "strict", "type_change": "fail"}`, "WARN spec.exclude; WARN spec.schema; WARN spec.type_change"},
	})
}

func TestRulesOfWriting(t *testing.T) {
	checkRules(t, map[string]rule{
		"schema strict":             {`{"schema": "strict"}`, ""},
		"schema of two":             {`{"schema": "loose"}`, "ERROR spec.schema"},
		"type_change":               {`{"type_change": "widen"}`, ""},
		"type_change of three":      {`{"type_change": "cast"}`, "ERROR spec.type_change"},
		"dedup":                     {`{"dedup": "offset"}`, ""},
		"dedup of three":            {`{"dedup": "key"}`, "ERROR spec.dedup"},
		"write replace":             {`{"write": "replace", "read": "full"}`, ""},
		"write replace needs full":  {`{"write": "replace"}`, "ERROR spec.write"},
		"write replace of the rest": {`{"write": "replace", "read": "continuous"}`, "ERROR spec.write"},
		"write upsert is later":     {`{"write": "upsert"}`, "ERROR spec.write"},
		"key is later":              {`{"key": ["id"]}`, "WARN spec.key"},
		"read full":                 {`{"read": "full"}`, ""},
		"read continuous":           {`{"read": "continuous"}`, ""},
		"read of three":             {`{"read": "tail"}`, "ERROR spec.read"},
		"filter":                    {`{"filter": {"headers": {"type": ["order.created", ""]}, "key_prefix": "FR-"}}`, ""},
		"filter by a word":          {`{"filter": {"headers": {"type": "order.created"}}}`, "ERROR spec.filter.headers"},
		"filter by nothing":         {`{"filter": {"headers": {"type": []}}}`, "ERROR spec.filter.headers"},
		"filter by numbers":         {`{"filter": {"headers": {"type": [1, null]}}}`, "ERROR spec.filter.headers; ERROR spec.filter.headers"},
		"filter headers in a list":  {`{"filter": {"headers": ["type"]}}`, "ERROR spec.filter.headers"},
		"filter by an empty prefix": {`{"filter": {"key_prefix": ""}}`, "ERROR spec.filter.key_prefix"},
		"filter is an object":       {`{"filter": true}`, "ERROR spec.filter"},
		"filter reads two keys":     {`{"filter": {"topic": "x"}}`, "WARN spec.filter.topic"},
	})
}

func TestRulesOfPresets(t *testing.T) {
	const hubs = `"brokers": "absent", "preset": "event-hubs"`
	checkRules(t, map[string]rule{
		"event-hubs":                  {`{` + hubs + `, "namespace": "my-namespace", "connection_string_env": "CONN"}`, ""},
		"event-hubs names its inputs": {`{` + hubs + `}`, "ERROR spec.namespace; ERROR spec.connection_string_env"},
		"event-hubs namespace alone":  {`{` + hubs + `, "namespace": "a.servicebus.windows.net", "connection_string_env": "CONN"}`, "ERROR spec.namespace"},
		"event-hubs names, no values": {`{` + hubs + `, "namespace": "a", "connection_string_env": "Endpoint=sb://x;SharedAccessKey=y"}`, "ERROR spec.connection_string_env"},
		"event-hubs writes brokers":   {`{"preset": "event-hubs", "namespace": "a", "connection_string_env": "C", "auth": {}}`, "ERROR spec.brokers; ERROR spec.auth"},
		"inputs have types":           {`{` + hubs + `, "namespace": 1, "connection_string_env": null}`, "ERROR spec.namespace; ERROR spec.connection_string_env"},
		"an unknown preset":           {`{"brokers": "absent", "preset": "event-hubbs", "namespace": "a"}`, "ERROR spec.preset"},
		"a preset by number":          {`{"brokers": "absent", "preset": 1}`, "ERROR spec.preset"},
		"confluent-cloud":             {`{"brokers": "absent", "preset": "confluent-cloud", "bootstrap": "pkc-1.eu.confluent.cloud:9092", "api_key_env": "K", "api_secret_env": "S"}`, ""},
		"confluent-cloud's inputs":    {`{"brokers": "absent", "preset": "confluent-cloud"}`, "ERROR spec.bootstrap; ERROR spec.api_key_env; ERROR spec.api_secret_env"},
		"msk-scram":                   {`{"brokers": "absent", "preset": "msk-scram", "bootstrap": "b-1:9096,b-2:9096", "username_env": "U", "password_env": "P"}`, ""},
		"msk-scram's inputs":          {`{"brokers": "absent", "preset": "msk-scram", "bootstrap": "b-1"}`, "ERROR spec.bootstrap; ERROR spec.username_env; ERROR spec.password_env"},
		"another preset's input":      {`{` + hubs + `, "namespace": "a", "connection_string_env": "C", "bootstrap": "a:1"}`, "WARN spec.bootstrap"},
		"an input without a preset":   {`{"namespace": "a"}`, "WARN spec.namespace"},
		"mistakes beside a preset":    {`{` + hubs + `, "namespace": "a", "connection_string_env": "C", "topic": "", "tls": {"enabled": false}}`, "ERROR spec.topic; ERROR spec.tls.enabled"},
	})
}

// A column that the sidecar keeps for itself and one that the validator refuses are the same.
func TestTheReservedColumnsAreThoseOfTheTable(t *testing.T) {
	s := connect(t, harness.Database(t))
	taken := get[[]string](s, "SELECT array_agg(name) FROM connector._taken_columns() WHERE why <> 'a transport column'")
	for _, name := range taken {
		if !table.Reserved(name) {
			t.Errorf("%q is refused as a rename, but the table may have it", name)
		}
	}
	for _, name := range []string{"id", "_row_hash", "_ingested_at", "_source", "_run_id", "_mapping_version", "tenant_id", "xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"} {
		if !slices.Contains(taken, name) {
			t.Errorf("%q is not refused as a rename", name)
		}
	}
}

// What an *_env key or a broker list holds may be a credential put there by mistake: no finding repeats it.
func TestFindingsShowNoCredential(t *testing.T) {
	s := connect(t, harness.Database(t))
	const canary = "hunter2"
	for _, spec := range []string{
		`{"auth": {"kind": "sasl-plain", "username_env": "hunter2 x", "password_env": "hunter2=="}}`,
		`{"auth": {"kind": "sasl-plain", "password": "hunter2", "password_env": ["hunter2"], "username_env": {"x": "hunter2"}}}`,
		`{"brokers": "user:hunter2@broker:9092"}`,
		`{"brokers": "hunter2;x:9092,https://hunter2:1"}`,
		`{"preset": "event-hubs", "namespace": "Endpoint=sb://x;Key=hunter2", "connection_string_env": "Endpoint=sb://x;Key=hunter2"}`,
		`{"brokers_env": "SASL=hunter2"}`,
		`{"tls": {"enabled": true, "ca_pem_env": "-----BEGIN hunter2"}}`,
	} {
		t.Run(spec, func(t *testing.T) {
			document := get[string](s, "SELECT ($1::jsonb || $2::jsonb)::text", least, spec)
			if n := get[int](s, "SELECT count(*) FROM connector.validate($1) AS f WHERE f::text LIKE '%' || $2 || '%'", document, canary); n != 0 {
				t.Errorf("%d findings show it: %v", n, validate(s, document))
			}
			if validate(s, document) == nil {
				t.Error("nothing was found")
			}
		})
	}
}

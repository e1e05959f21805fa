package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Found is what a tenant's registry of secrets holds under some names. A name of neither map is not there.
type Found struct {
	Values   map[string]string
	Unopened map[string]string // stored, but it does not open: why, in words that show nothing of it
}

// names gives the names in the manifest's *_env keys.
func (m manifest) names() []string {
	all := []string{m.BrokersEnv}
	if m.Auth != nil {
		all = append(all, m.Auth.UsernameEnv, m.Auth.PasswordEnv)
	}
	if m.TLS != nil {
		all = append(all, m.TLS.CAPEMEnv, m.TLS.CertPEMEnv, m.TLS.KeyPEMEnv)
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// secrets looks up, in one question, what the tenant's registry has of the manifest's names: as it is now, also for a run
// that began under another value.
func (r *run) secrets(ctx context.Context) (resolver, error) {
	out := resolver{environ: r.w.o.Environ}
	names := r.m.names()
	if len(names) == 0 || r.w.o.Secrets == nil {
		return out, nil
	}
	found, err := r.w.o.Secrets(ctx, r.c.TenantID, names)
	if err != nil {
		end := failed("database_error", "the database could not be asked for this connector's secrets: "+err.Error(), "Run the connector again.")
		end.Retryable = true
		return out, &stop{end: end, err: err}
	}
	out.unopened = found.Unopened
	out.registry = func(name string) (string, bool) { v, ok := found.Values[name]; return v, ok }
	return out, nil
}

// resolver finds the values of *_env names.
type resolver struct {
	registry func(name string) (string, bool) // may be nil
	environ  func(name string) (string, bool)
	unopened map[string]string

	credentials *[]string // collects what was found, but for addresses, so that it can be masked; may be nil
}

// value resolves the name that the manifest gives under key: the tenant's registry first, the environment second.
// Blanks count as nothing. The value never becomes part of an error. One that is stored and does not open ends the run: the
// environment may hold another credential, which nobody meant.
func (r resolver) value(key, name string) (string, error) {
	if why, ok := r.unopened[name]; ok {
		return "", &stop{end: failed("secret_missing", fmt.Sprintf("'%s' (%s) is in this tenant's secret registry, but %s", name, key, why),
			fmt.Sprintf("Set it anew: highwater seal %s makes the statement.", name))}
	}
	for _, look := range []func(string) (string, bool){r.registry, r.environ} {
		if look == nil {
			continue
		}
		if v, ok := look(name); ok && strings.TrimSpace(v) != "" {
			if r.credentials != nil && key != "brokers_env" {
				*r.credentials = append(*r.credentials, v)
			}
			return v, nil
		}
	}
	return "", &stop{end: failed("secret_missing",
		fmt.Sprintf("'%s' (%s) resolves to nothing: it is neither in this tenant's secret registry nor in the sidecar's environment, or it is blank", name, key),
		fmt.Sprintf("Store it: highwater seal %s makes the statement; or set it where the sidecar runs. Then run the connector again.", name))}
}

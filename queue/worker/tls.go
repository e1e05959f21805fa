package worker

import (
	"crypto/tls"
	"crypto/x509"

	"highwater/reader/kafka"
)

// tls turns the manifest's tls block into a client configuration: on where the block says so, or where auth asks for
// SASL_SSL (its default). Certificates are always verified.
func (m manifest) tls(r resolver, o *kafka.Options) error {
	if !m.wantsTLS() {
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if k := m.TLS; k != nil {
		c.ServerName = k.ServerName
		if err := k.roots(r, c); err != nil {
			return err
		}
		if err := k.identity(r, c); err != nil {
			return err
		}
	}
	o.TLS = c
	return nil
}

func (m manifest) wantsTLS() bool {
	if m.TLS != nil && m.TLS.Enabled != nil {
		return *m.TLS.Enabled
	}
	if m.Auth == nil || m.Auth.Kind == "" || m.Auth.Kind == "none" {
		return false
	}
	return m.Auth.SecurityProtocol == "" || m.Auth.SecurityProtocol == "SASL_SSL"
}

func (k tlsKeys) roots(r resolver, c *tls.Config) error {
	if k.CAPEMEnv == "" {
		return nil // the system's roots
	}
	pem, err := r.value("tls.ca_pem_env", k.CAPEMEnv)
	if err != nil {
		return err
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM([]byte(pem)) {
		return &stop{end: failed("tls_failed", "'"+k.CAPEMEnv+"' (tls.ca_pem_env) holds no PEM certificate", "Give the whole PEM text, BEGIN and END lines included.")}
	}
	return nil
}

func (k tlsKeys) identity(r resolver, c *tls.Config) error {
	if k.CertPEMEnv == "" {
		return nil
	}
	cert, err := r.value("tls.cert_pem_env", k.CertPEMEnv)
	if err != nil {
		return err
	}
	key, err := r.value("tls.key_pem_env", k.KeyPEMEnv)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil { // its text may quote the material: say only what is wrong in kind
		return &stop{end: failed("tls_failed", "'"+k.CertPEMEnv+"' and '"+k.KeyPEMEnv+"' (tls.cert_pem_env, tls.key_pem_env) are no matching PEM certificate and key", "Give both as PEM text, of one pair.")}
	}
	c.Certificates = []tls.Certificate{pair}
	return nil
}

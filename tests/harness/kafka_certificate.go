package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// certificate is one key for everybody: the broker's, its own authority, and a client's if it likes.
type certificate struct {
	cert, key            []byte // PEM
	keystore, truststore string // files, as Kafka reads PEM
}

// certificateLife is far longer than any test, and short enough that a key which leaks is of no use.
const certificateLife = 24 * time.Hour

func newCertificate(dir string) (certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate{}, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "highwater test broker"},
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.ParseIP(loopback)},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(certificateLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	packed, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return certificate{}, fmt.Errorf("packing a key: %w", err)
	}
	c := certificate{
		cert:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		key:        pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: packed}),
		keystore:   filepath.Join(dir, "keystore.pem"),
		truststore: filepath.Join(dir, "truststore.pem"),
	}
	if err := os.WriteFile(c.keystore, slices.Concat(c.key, c.cert), 0o600); err != nil {
		return certificate{}, fmt.Errorf("writing the broker's key: %w", err)
	}
	if err := os.WriteFile(c.truststore, c.cert, 0o600); err != nil {
		return certificate{}, fmt.Errorf("writing the broker's certificate: %w", err)
	}
	return c, nil
}

// Package seal seals secrets to a database's public key, and opens them with the private key that its sidecars hold.
//
// It knows no database and no setting: where the public key and the sealed values lie is package store's business, where the
// key file lies the composition root's. Types to know: [Public], which seals; [Key], which opens too; [Name], what a value is
// bound to. **A sealed value opens only under the tenant and the name that it was sealed for**, so a copy of it is of no use
// to another tenant, nor under another name of a connector that talks to somebody else's broker.
//
// A sealed value is an OpenPGP message to an RSA-3072 key of version 4: what pgcrypto's pgp_pub_encrypt makes inside the
// server, too (https://www.postgresql.org/docs/current/pgcrypto.html). ECDH and later key versions pgcrypto refuses.
package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

const (
	// Prefix marks a sealed value in a statement.
	Prefix = "hwseal1:"
	// MaxValue is the longest value, in bytes; connector.secret_set has the same limit.
	MaxValue = 64 << 10
	// maxPrologue is the most that stands before the value: the tenant, the name (128 bytes) and the mark.
	maxPrologue = 256
	// mark begins what is sealed, so that nothing else that was sealed to the key is ever taken for a secret.
	mark = "highwater secret 1"
)

// ErrSealed is returned where a sealed value does not open: it is sealed to another key, for another tenant or name, or
// damaged. It says no more, because whoever stores values could learn from more.
var ErrSealed = errors.New("the sealed value does not open: it was sealed to another key, for another tenant or name, or is damaged")

// Name is what a secret is known by: its name within a tenant.
type Name struct {
	Tenant int64
	Name   string
}

func (n Name) prologue() string { return fmt.Sprintf("%s\n%d\n%s\n", mark, n.Tenant, n.Name) }

// Public is a public key. The zero value is none.
type Public struct{ entity *openpgp.Entity }

// ParsePublic reads a public key as [Public.Bytes] gives it.
func ParsePublic(key []byte) (Public, error) {
	entity, err := openpgp.ReadEntity(packet.NewReader(bytes.NewReader(key)))
	if err != nil {
		return Public{}, fmt.Errorf("reading a public key: %w", err)
	}
	if len(entity.Subkeys) != 1 {
		return Public{}, fmt.Errorf("the public key has %d subkeys, not 1", len(entity.Subkeys))
	}
	return Public{entity}, nil
}

// Bytes is the key as pgcrypto takes it.
func (p Public) Bytes() ([]byte, error) {
	var b bytes.Buffer
	if err := p.entity.Serialize(&b); err != nil {
		return nil, fmt.Errorf("writing a public key: %w", err)
	}
	return b.Bytes(), nil
}

// Fingerprint is the key's fingerprint: 40 hexadecimal digits.
func (p Public) Fingerprint() string { return fmt.Sprintf("%X", p.entity.PrimaryKey.Fingerprint) }

// ID is the id of the subkey that values are sealed to, 16 hexadecimal digits: a sealed value bears it openly.
func (p Public) ID() string { return fmt.Sprintf("%016X", p.entity.Subkeys[0].PublicKey.KeyId) }

// Seal seals a value. It is refused where it is blank, longer than [MaxValue], or no text that PostgreSQL could hold; the
// error never shows it.
func (p Public) Seal(n Name, value string) ([]byte, error) {
	switch {
	case strings.TrimSpace(value) == "":
		return nil, errors.New("the value is blank")
	case len(value) > MaxValue:
		return nil, fmt.Errorf("the value has more than %d bytes", MaxValue)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return nil, errors.New("the value is not text: it is no UTF-8, or it holds a NUL")
	}
	var b bytes.Buffer
	w, err := openpgp.Encrypt(&b, []*openpgp.Entity{p.entity}, nil, &openpgp.FileHints{IsBinary: true}, settings(p.entity.PrimaryKey.CreationTime))
	if err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	if _, err := io.WriteString(w, n.prologue()+value); err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	return b.Bytes(), nil
}

// Text is a sealed value as connector.secret_set takes it.
func Text(sealed []byte) string { return Prefix + base64.StdEncoding.EncodeToString(sealed) }

// Recipient gives the id of the key that a value is sealed to, as [Public.ID] writes it, or nothing where it is no sealed value.
func Recipient(sealed []byte) string {
	p, err := packet.Read(bytes.NewReader(sealed))
	if err != nil {
		return ""
	}
	if k, ok := p.(*packet.EncryptedKey); ok {
		return fmt.Sprintf("%016X", k.KeyId)
	}
	return ""
}

package seal

import (
	"bytes"
	"crypto"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

const (
	// keyBits is the length of the RSA keys.
	keyBits = 3072
	// identity names the key's purpose in the key itself, which OpenPGP wants.
	identity = "highwater secrets"
)

// Key is a private key with its public one. It is safe for concurrent use.
type Key struct{ Public }

// Generate makes a new key. It takes a second of a processor, more on a small one.
func Generate() (*Key, error) {
	entity, err := openpgp.NewEntity(identity, "", "", settings(time.Time{}))
	if err != nil {
		return nil, fmt.Errorf("making a key pair: %w", err)
	}
	return &Key{Public{entity}}, nil
}

// settings are how keys and values are made. A machine whose clock is behind made the key or seals to it: the key's own time
// is the least that counts, for a value must not depend on clocks.
func settings(made time.Time) *packet.Config {
	return &packet.Config{
		Algorithm: packet.PubKeyAlgoRSA, RSABits: keyBits, DefaultHash: crypto.SHA256, DefaultCipher: packet.CipherAES256,
		Time: func() time.Time {
			if now := time.Now(); now.After(made) {
				return now
			}
			return made
		},
	}
}

// Open gives a value back, or [ErrSealed].
func (k *Key) Open(n Name, sealed []byte) (string, error) {
	m, err := openpgp.ReadMessage(bytes.NewReader(sealed), openpgp.EntityList{k.entity}, nil, settings(time.Time{}))
	if err != nil || m.LiteralData == nil {
		return "", ErrSealed
	}
	// Read to the end: only there is the message known to be whole. One that grows beyond the limit is not read on.
	b, err := io.ReadAll(io.LimitReader(m.UnverifiedBody, MaxValue+maxPrologue+1))
	if err != nil || len(b) > MaxValue+maxPrologue {
		return "", ErrSealed
	}
	value, ours := strings.CutPrefix(string(b), n.prologue())
	if !ours {
		return "", ErrSealed
	}
	return value, nil
}

// armored is the private key as its file holds it: without a pass phrase, because a sidecar starts unattended.
func (k *Key) armored() ([]byte, error) {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PrivateKeyType, map[string]string{"Comment": "highwater: private key of the secrets, fingerprint " + k.Fingerprint()})
	if err != nil {
		return nil, fmt.Errorf("writing a private key: %w", err)
	}
	if err := k.entity.SerializePrivateWithoutSigning(w, nil); err != nil {
		return nil, fmt.Errorf("writing a private key: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing a private key: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// parseKey reads what armored wrote. Its errors quote nothing of the text.
func parseKey(text []byte) (*Key, error) {
	block, err := armor.Decode(bytes.NewReader(text))
	if err != nil || block.Type != openpgp.PrivateKeyType {
		return nil, errNoKey
	}
	entity, err := openpgp.ReadEntity(packet.NewReader(block.Body))
	if err != nil || len(entity.Subkeys) != 1 || entity.Subkeys[0].PrivateKey == nil || entity.Subkeys[0].PrivateKey.Encrypted {
		return nil, errNoKey
	}
	return &Key{Public{entity}}, nil
}

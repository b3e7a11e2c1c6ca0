package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates that brokers and clients know each other by.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority whose files are kept in a directory of its name.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{dir: filepath.Join(t.TempDir(), name)}
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.CA(), block("CERTIFICATE", der))
	return a
}

// CA is the file with the authority's own certificate.
func (a *Authority) CA() string { return filepath.Join(a.dir, "ca.pem") }

// Certificate is a pair of files.
type Certificate struct {
	Cert, Key string
	Both      string // the key and the certificate in one file, as Kafka's keystores of type PEM want it
}

// Issue makes a certificate that is valid until the given time, for the address 127.0.0.1 and the given common name.
func (a *Authority) Issue(t testing.TB, name string, until time.Time) Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore: a.cert.NotBefore, NotAfter: until,
	}
	key := newKey(t)
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(a.dir, name)
	c := Certificate{Cert: base + ".pem", Key: base + ".key", Both: base + ".both"}
	writePEM(t, c.Cert, block("CERTIFICATE", cert))
	writePEM(t, c.Key, block("PRIVATE KEY", pkcs8))
	writePEM(t, c.Both, block("PRIVATE KEY", pkcs8), block("CERTIFICATE", cert))
	return c
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte) *pem.Block { return &pem.Block{Type: kind, Bytes: der} }

func writePEM(t testing.TB, file string, blocks ...*pem.Block) {
	t.Helper()
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(b)...)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

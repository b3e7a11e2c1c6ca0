package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/streamworker/streamworker/pkg/kafka"
)

// identity writes a certificate that vouches for itself, and its key, and returns them.
func identity(t *testing.T, dir, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Certificates are read for each connection: one that was replaced needs no restart.
func TestCertificatesAreReadAnew(t *testing.T) {
	brokerDir, ownDir := t.TempDir(), t.TempDir()
	var mu sync.Mutex
	var seen string // the common name of the last client
	cluster := fake(t, kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{identity(t, brokerDir, "broker")}, ClientAuth: tls.RequireAnyClientCert,
		VerifyConnection: func(s tls.ConnectionState) error {
			mu.Lock()
			defer mu.Unlock()
			seen = s.PeerCertificates[0].Subject.CommonName
			return nil
		},
	}))
	settings := kafka.Connection{Brokers: cluster.ListenAddrs(), TLS: kafka.TLS{
		Enabled: true, CA: filepath.Join(brokerDir, "cert"), Cert: filepath.Join(ownDir, "cert"), Key: filepath.Join(ownDir, "key"),
	}}
	connector := kafka.NewConnector(settings, discard)
	for _, name := range []string{"first", "second"} {
		identity(t, ownDir, name)
		if err := kafka.Reach(t.Context(), clientOf(t, connector), time.Minute); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if seen != name {
			t.Errorf("the broker sees %q, want %q", seen, name)
		}
		mu.Unlock()
	}
	// A wait of an hour: none of these is waited for.
	if err := os.WriteFile(settings.TLS.Key, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := kafka.Reach(t.Context(), clientOf(t, connector), time.Hour); !strings.Contains(fmt.Sprint(err), "kafka.tls.key: "+settings.TLS.Key+" holds no key") {
		t.Errorf("a broken key: got %v", err)
	}
	identity(t, ownDir, "third")
	identity(t, brokerDir, "another broker")
	if err := kafka.Reach(t.Context(), clientOf(t, connector), time.Hour); !strings.Contains(fmt.Sprint(err), "set kafka.tls.ca") {
		t.Errorf("another authority: got %v", err)
	}
}

func TestCheck(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	identity(t, one, "one")
	identity(t, other, "other")
	encrypted := filepath.Join(one, "encrypted")
	if err := os.WriteFile(encrypted, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(one, "cert"), filepath.Join(one, "key")
	for _, c := range []struct {
		name string
		tls  kafka.TLS
		now  time.Time
		want []string
	}{
		{"good", kafka.TLS{CA: cert, Cert: cert, Key: key}, time.Now(), nil},
		{"all missing", kafka.TLS{CA: "/no/a", Cert: "/no/b", Key: "/no/c"}, time.Now(), []string{"kafka.tls.ca: open /no/a", "kafka.tls.cert: open /no/b", "kafka.tls.key: open /no/c"}},
		{"exchanged", kafka.TLS{CA: key, Cert: cert, Key: cert}, time.Now(), []string{"kafka.tls.ca: " + key + " holds no certificate", "kafka.tls.key: " + cert + " does not go with"}},
		{"another's", kafka.TLS{Cert: cert, Key: filepath.Join(other, "key")}, time.Now(), []string{"kafka.tls.key: " + filepath.Join(other, "key") + " does not go with the certificate in " + cert}},
		{"encrypted", kafka.TLS{Cert: cert, Key: encrypted}, time.Now(), []string{"kafka.tls.key: " + encrypted + " is encrypted"}},
		{"expired", kafka.TLS{Cert: cert, Key: key}, time.Now().Add(48 * time.Hour), []string{"kafka.tls.cert: the certificate in " + cert + " expired on"}},
		{"too early", kafka.TLS{Cert: cert, Key: key}, time.Now().Add(-48 * time.Hour), []string{"kafka.tls.cert: the certificate in " + cert + " is valid from"}},
	} {
		c.tls.Enabled = true
		found := kafka.Connection{TLS: c.tls}.Check(c.now)
		if len(found) != len(c.want) {
			t.Errorf("%s: got %v", c.name, found)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(found[i].Error(), want) {
				t.Errorf("%s: got %v, want %s", c.name, found[i], want)
			}
		}
	}
}

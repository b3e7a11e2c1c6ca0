package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Access says who may use the TCP side. The zero Access is for a listener that only this host reaches.
type Access struct {
	Token string      // that clients present; "": none
	TLS   *tls.Config // nil: plain HTTP. With ClientCAs, clients may present a certificate of them
}

// ErrOpen is returned by ServePublic for a listener that other hosts reach while nothing says who may.
var ErrOpen = errors.New("the admin address can be reached from other hosts, and nothing says who may: set admin.token_file, or admin.tls with client_ca, or listen on this host only")

// needed says whether a client has to present anything.
func (a Access) needed() bool { return a.Token != "" || a.byCertificate() }

func (a Access) byCertificate() bool { return a.TLS != nil && a.TLS.ClientCAs != nil }

// check refuses to be open to other hosts.
func (a Access) check(addr net.Addr) error {
	ip, err := netip.ParseAddrPort(addr.String())
	if a.needed() || err == nil && ip.Addr().Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s: %w", addr, ErrOpen)
}

// guard lets those in who present what they must. Where nothing is needed, it lets in those who ask for this host by
// a name that means this host: else any page in a browser here could read everything under a name of its own that it
// has resolve to 127.0.0.1. Wrong tokens are bounded by tries.
func (a Access) guard(next http.Handler, tries *attempts, log *slog.Logger) http.Handler {
	want := sha256.Sum256([]byte(a.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !a.needed() && !thisHost(r.Host):
			fail(w, http.StatusMisdirectedRequest, "this instance is served to its own host only: ask for localhost or 127.0.0.1")
		case !a.needed(),
			a.byCertificate() && r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
			next.ServeHTTP(w, r)
		case a.Token == "":
			fail(w, http.StatusUnauthorized, "a client certificate is needed")
		case r.Header.Get("Authorization") == "": // no guess
			deny(w)
		default:
			wait, last := tries.take(r)
			switch {
			case wait > 0:
				w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
				fail(w, http.StatusTooManyRequests, "too many wrong tokens came from this address: wait, and send the right one")
			case presents(r, want):
				tries.giveBack(r)
				next.ServeHTTP(w, r)
			default:
				if last {
					log.Warn("many wrong tokens: requests from there are refused for a while", "address", addressOf(r.RemoteAddr).String())
				}
				deny(w)
			}
		}
	})
}

func deny(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="streamworker"`)
	fail(w, http.StatusUnauthorized, "the token is missing or wrong: send Authorization: Bearer TOKEN")
}

// presents compares in a time that does not depend on what the client sent.
func presents(r *http.Request, want [sha256.Size]byte) bool {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok && strings.EqualFold(scheme, "bearer")
}

// thisHost says whether a Host header means this host.
func thisHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback() || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost")
}

// TLSConfig reads the files of a listener; clientCA may be "". The certificate is read again when its file changes.
func TLSConfig(cert, key, clientCA string) (*tls.Config, error) {
	c := &certificate{cert: cert, key: key}
	if _, err := c.get(nil); err != nil {
		return nil, fmt.Errorf("admin.tls: %w", err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	if clientCA == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, fmt.Errorf("admin.tls.client_ca: %w", err)
	}
	cfg.ClientCAs = x509.NewCertPool()
	if !cfg.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("admin.tls.client_ca: %s holds no certificate in PEM form", clientCA)
	}
	cfg.ClientAuth = tls.VerifyClientCertIfGiven // health is for everybody; guard asks for it elsewhere
	return cfg, nil
}

// certificate is a pair of files that may be renewed while the process runs.
type certificate struct {
	cert, key string

	mu   sync.Mutex
	pair *tls.Certificate
	at   time.Time // modification time of the file of the pair
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if c.pair != nil && (err != nil || info.ModTime().Equal(c.at)) {
		return c.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	switch {
	case err == nil:
		c.pair, c.at = &pair, info.ModTime()
	case c.pair == nil:
		return nil, err
	}
	return c.pair, nil // of two files, only one may be new yet: the old pair serves on
}

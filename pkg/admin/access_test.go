package admin

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

const token = "correct-horse-battery-staple"

// elsewhere is a listener that says it can be reached from other hosts.
type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 9464} }

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// public serves an API that answers "open" on a listener that other hosts reach, and gives its address.
func public(t *testing.T, a Access, log io.Writer) (addr string, reg *prometheus.Registry) {
	t.Helper()
	reg = prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "hits_total", Help: "Hits."}))
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 100)); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		_, _ = io.WriteString(w, "open")
	})
	l := listen(t)
	s := NewServer(Config{
		Instance: &instance{ready: true}, Metrics: reg, API: api, Access: a,
		Pages:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }),
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	serve(t, elsewhere{l}, s.ServePublic)
	return l.Addr().String(), reg
}

// ask sends a request and returns its code and body.
func ask(t *testing.T, client *http.Client, req *http.Request) (int, string) {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func newClient(t *testing.T, cfg *tls.Config) *http.Client {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func request(t *testing.T, method, url, authorization string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	return req
}

func TestClosedBeyondThisHost(t *testing.T) {
	for _, a := range []Access{{}, {TLS: &tls.Config{MinVersion: tls.VersionTLS12}}} {
		l := listen(t)
		err := NewServer(Config{Instance: &instance{}, Access: a, Logger: slog.New(slog.DiscardHandler)}).ServePublic(t.Context(), elsewhere{l})
		if !errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), "0.0.0.0:9464") {
			t.Errorf("%v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener was left open: %v", err)
		}
	}
}

func TestToken(t *testing.T) {
	var log bytes.Buffer
	addr, reg := public(t, Access{Token: token}, &log)
	client := newClient(t, nil)
	for _, path := range []string{"/api/v1/overview", "/metrics"} {
		for _, wrong := range []string{"", "Bearer", "Bearer ", "Bearer " + token[1:], "Bearer " + token + "x", "bearer  " + token, "Basic " + token, token} {
			code, body := ask(t, client, request(t, http.MethodGet, "http://"+addr+path, wrong))
			if code != http.StatusUnauthorized || strings.Contains(body, token) {
				t.Errorf("%s with %q: %d %s", path, wrong, code, body)
			}
		}
		if code, body := ask(t, client, request(t, http.MethodGet, "http://"+addr+path, "Bearer "+token)); code != http.StatusOK {
			t.Errorf("%s with the token: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/"} { // probes have no token, and a page asks for it
		if code, _ := ask(t, client, request(t, http.MethodGet, "http://"+addr+path, "")); code != http.StatusOK {
			t.Errorf("%s without a token: %d", path, code)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&log, f); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(log.String(), token) {
		t.Errorf("the token is in the log or the metrics:\n%s", log.String())
	}
}

// A page of another origin can neither read nor order: not under a name of its own that means this host, and not by a form.
func TestOtherOrigins(t *testing.T) {
	l := listen(t)
	api := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	serve(t, l, NewServer(Config{Instance: &instance{}, API: api, Logger: slog.New(slog.DiscardHandler)}).ServePublic)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	client := newClient(t, nil)
	for host, want := range map[string]int{
		"localhost:" + port: http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:" + port: http.StatusOK, "LocalHost": http.StatusOK,
		"evil.example:" + port: http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest, "localhost.evil.example": http.StatusMisdirectedRequest,
	} {
		req := request(t, http.MethodGet, "http://"+l.Addr().String()+"/api/x", "")
		req.Host = host
		if code, _ := ask(t, client, req); code != want {
			t.Errorf("host %s: %d, want %d", host, code, want)
		}
	}
	for site, want := range map[string]int{"same-origin": http.StatusOK, "cross-site": http.StatusForbidden, "same-site": http.StatusForbidden} {
		req := request(t, http.MethodPost, "http://"+l.Addr().String()+"/api/x", "")
		req.Header.Set("Sec-Fetch-Site", site)
		if code, _ := ask(t, client, req); code != want {
			t.Errorf("an order from %s: %d, want %d", site, code, want)
		}
	}
	resp, err := client.Do(request(t, http.MethodGet, "http://"+l.Addr().String()+"/livez", ""))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self';") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy: %s", csp)
	}
}

// authority signs certificates and writes them to files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", nil)
	return a
}

// issue writes name.pem and name.key; without an issuer it is an authority's own.
func (a *authority) issue(name string, issuer *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.n++
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(a.n), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: issuer == nil, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := tmpl, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for suffix, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(a.file(name+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// client trusts the authority and presents the certificate of that name, if any.
func (a *authority) client(name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	cfg := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
		if err != nil {
			a.t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg
}

func TestMutualTLS(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	ca.issue("server", ca)
	ca.issue("ops", ca)
	stranger.issue("ops", stranger)
	cfg, err := TLSConfig(ca.file("server.pem"), ca.file("server.key"), ca.file("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := public(t, Access{TLS: cfg}, io.Discard)
	get := func(client *http.Client, path string) int {
		code, _ := ask(t, client, request(t, http.MethodGet, "https://"+addr+path, ""))
		return code
	}
	known, none := newClient(t, ca.client("ops")), newClient(t, ca.client(""))
	if code := get(known, "/api/x"); code != http.StatusOK {
		t.Errorf("with a certificate: %d", code)
	}
	if code := get(none, "/api/x"); code != http.StatusUnauthorized {
		t.Errorf("without: %d", code)
	}
	if code := get(none, "/livez"); code != http.StatusOK {
		t.Errorf("health without: %d", code)
	}
	foreign := ca.client("")
	foreign.Certificates = stranger.client("ops").Certificates
	if resp, err := newClient(t, foreign).Do(request(t, http.MethodGet, "https://"+addr+"/api/x", "")); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized { // Go's client does not present what the server does not ask for
			t.Errorf("a stranger's certificate: %s", resp.Status)
		}
	}

	before, err := cfg.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	ca.issue("server", ca)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(ca.file("server.pem"), later, later); err != nil {
		t.Fatal(err)
	}
	if after, err := cfg.GetCertificate(nil); err != nil || bytes.Equal(after.Certificate[0], before.Certificate[0]) {
		t.Errorf("a renewed certificate is not served: %v", err)
	}
	if err := os.WriteFile(ca.file("server.pem"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.GetCertificate(nil); err != nil {
		t.Errorf("while it is being written: %v", err)
	}
	for _, files := range [][3]string{{"no", "no", ""}, {"ops.pem", "ops.key", "no"}, {"ops.pem", "ops.key", "ops.key"}, {"ops.pem", "ca.key", ""}} {
		ca := func(name string) string {
			if name == "" {
				return ""
			}
			return ca.file(name)
		}
		if _, err := TLSConfig(ca(files[0]), ca(files[1]), ca(files[2])); err == nil || !strings.HasPrefix(err.Error(), "admin.tls") {
			t.Errorf("%v: %v", files, err)
		}
	}
}

// What clients do wrong costs them their connection, and nobody else anything.
func TestBadRequests(t *testing.T) {
	l := listen(t)
	s := NewServer(Config{Instance: &instance{ready: true}, Access: Access{Token: token}, Logger: slog.New(slog.DiscardHandler),
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1000)); err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
		})})
	s.limits.header, s.limits.read, s.limits.idle, s.limits.connections = 200*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond, 10
	serve(t, l, s.ServePublic)

	// say sends text and returns what comes until the server ends the connection.
	say := func(text string) string {
		t.Helper()
		c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, text) // the server may have ended it already
		answer, _ := io.ReadAll(c)
		return string(answer)
	}
	head := "POST /api/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n"
	for what, c := range map[string]struct{ text, want string }{
		"nothing":         {"", ""},
		"half a header":   {head, ""},
		"no HTTP":         {"\x16\x03\x01\x02\x00\x01\x00", "400"},
		"garbage":         {"GET \x00 HTTP/9\r\n\r\n", "400"},
		"two lengths":     {head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "400"},
		"a long header":   {head + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "431"},
		"a long body":     {head + "Content-Length: 1000000\r\n\r\n" + strings.Repeat("x", 1_000_000), "413"},
		"a body too slow": {head + "Content-Length: 100\r\n\r\nx", "413"},
		"up and away":     {"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 "},
	} {
		answer := say(c.text)
		first, _, _ := strings.Cut(answer, "\r\n")
		if c.want == "" && answer != "" && !strings.Contains(first, "408") || !strings.Contains(first, c.want) {
			t.Errorf("%s: %q, want %q", what, first, c.want)
		}
		if strings.Contains(answer, token) || strings.Contains(answer, "root:") {
			t.Errorf("%s: the answer tells a secret: %s", what, answer)
		}
	}

	// More silent connections than there may be: they are ended, and the next one is served.
	for range 25 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if code, _ := ask(t, newClient(t, nil), request(t, http.MethodGet, "http://"+l.Addr().String()+"/livez", "")); code != http.StatusOK {
		t.Errorf("after all that: %d", code)
	}
}

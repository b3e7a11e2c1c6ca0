package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// MinToken is the least length of a token in bytes, so that it cannot be guessed.
const MinToken = 16

func (r *reader) admin(n yamlnode.Node) {
	m, a := n.Map(), &r.c.Admin
	listen, advertise, token, tokenFile := m.Get("listen"), m.Get("advertise"), m.Get("token"), m.Get("token_file")
	address := listen.String("")
	if address != "" {
		if err := checkAddress(address, false); err != nil {
			listen.Errorf("write host:port, or :PORT for this host only", "%v", err)
			address = ""
		} else if host, port, _ := net.SplitHostPort(address); host == "" {
			address = net.JoinHostPort("127.0.0.1", port)
			listen.Become(address)
		}
	}
	a.Listen, a.Token, a.TokenFile = address, r.secret(token), r.filePath(tokenFile)
	if a.Advertise = advertise.String(""); a.Advertise != "" {
		switch err := checkAddress(a.Advertise, true); {
		case err != nil:
			advertise.Errorf("write host:port, as others reach it", "%v", err)
		case !listen.Exists():
			advertise.Errorf("add admin.listen, or remove it", "nothing is served without admin.listen")
		}
	}
	switch {
	case a.Token != "" && a.TokenFile != "":
		tokenFile.Errorf("remove one of them", "admin.token is given as well")
	case a.Token != "" && len(a.Token) < MinToken:
		token.Errorf("make one by: openssl rand -hex 32", "a token of %d characters can be guessed: at least %d", len(a.Token), MinToken)
	}
	r.adminTLS(m.Get("tls"))
	a.AllowActions = m.Get("allow_actions").Bool(false)
	m.Done()
	if address != "" && !IsLoopback(address) && a.Token == "" && a.TokenFile == "" && a.TLS.ClientCA == "" {
		listen.Errorf("add admin.token_file, or admin.tls with client_ca; or listen on this host only: :PORT",
			"%s can be reached from other hosts, and nothing says who may", address)
	}
}

func (r *reader) adminTLS(n yamlnode.Node) {
	m, t := n.Map(), &r.c.Admin.TLS
	cert, key, ca := m.Get("cert"), m.Get("key"), m.Get("client_ca")
	t.Cert, t.Key, t.ClientCA = r.filePath(cert), r.filePath(key), r.filePath(ca)
	switch {
	case t.Cert != "" && t.Key == "":
		cert.Errorf("write key: FILE beside it", "a certificate without admin.tls.key")
	case t.Key != "" && t.Cert == "":
		key.Errorf("write cert: FILE beside it", "a key without admin.tls.cert")
	case t.ClientCA != "" && t.Cert == "":
		ca.Errorf("write cert and key beside it", "clients present certificates only to a listener that has one")
	}
	m.Done()
}

// check reads the files that the settings name and returns what is wrong with them. A certificate that has expired is none of
// it: an instance whose dashboard nobody can use still has its work to do.
func (a Admin) check() (found []*kafka.SettingError) {
	note := func(err error) { found = append(found, kafka.SettingErrors(err)...) }
	if a.TokenFile != "" {
		_, err := ReadToken("admin.token_file", a.TokenFile)
		note(err)
	}
	if a.TLS.Cert != "" && a.TLS.Key != "" {
		_, err := kafka.LoadPair("admin.tls.cert", "admin.tls.key", a.TLS.Cert, a.TLS.Key)
		note(err)
	}
	if a.TLS.ClientCA != "" {
		_, err := kafka.LoadAuthorities("admin.tls.client_ca", a.TLS.ClientCA, "the clients")
		note(err)
	}
	return found
}

// ReadToken reads a token from the file of a setting, without the space around it. The error is of *kafka.SettingError.
func ReadToken(setting, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", &kafka.SettingError{Setting: setting, Message: err.Error(), Hint: "give a file that this process may read", Err: err}
	}
	token := strings.TrimSpace(string(text))
	if len(token) < MinToken || strings.ContainsAny(token, " \t\r\n") {
		return "", &kafka.SettingError{Setting: setting, Message: fmt.Sprintf("%s holds no token of at least %d characters in one line", file, MinToken),
			Hint: "make one by: openssl rand -hex 32"}
	}
	return token, nil
}

// IsLoopback reports whether an address host:port can be reached from its own host only.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return isLoopback(host)
}

func (r *reader) telemetry(n yamlnode.Node) {
	m := n.Map()
	t := m.Get("traces").Map()
	endpoint := t.Get("endpoint")
	traces := &r.c.Telemetry.Traces
	traces.Endpoint = endpoint.String("")
	if traces.Endpoint != "" {
		u, err := url.Parse(traces.Endpoint)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			endpoint.Errorf("write http://HOST:4318 or https://HOST", "no lawful address of a collector that takes OTLP over HTTP")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			endpoint.Errorf("set OTEL_EXPORTER_OTLP_HEADERS in the environment", "a secret does not belong into the address")
		}
	}
	traces.CommitEvery = int(t.Get("commit_every").Int(100, 0, 1_000_000_000))
	t.Done()
	m.Done()
}

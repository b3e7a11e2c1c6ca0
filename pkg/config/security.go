package config

import (
	"fmt"
	"net/netip"
	"net/url"

	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// tls reads kafka.tls or another client's. Naming any of it turns TLS on.
func (r *reader) tls(n yamlnode.Node, t *kafka.TLS) {
	m := n.Map()
	enabled, cert, key := m.Get("enabled"), m.Get("cert"), m.Get("key")
	t.CA = r.filePath(m.Get("ca"))
	t.Cert, t.Key = r.filePath(cert), r.filePath(key)
	t.ServerName = m.Get("server_name").String("")
	t.Enabled = enabled.Bool(n.IsMap() || *t != kafka.TLS{})
	switch {
	case t.Cert != "" && t.Key == "":
		cert.Errorf("write key: FILE beside it", "a certificate without %s", key.Path())
	case t.Key != "" && t.Cert == "":
		key.Errorf("write cert: FILE beside it", "a key without %s", cert.Path())
	}
	m.Done()
}

// sasl reads kafka.sasl. The mechanism decides what else must be there, and what may not.
func (r *reader) sasl(n yamlnode.Node) {
	m, s := n.Map(), &r.c.Kafka.SASL
	mechanism := m.Get("mechanism")
	username, password, passwordFile := m.Get("username"), m.Get("password"), m.Get("password_file")
	tokenFile, endpoint, extensions := m.Get("token_file"), m.Get("token_endpoint"), m.Get("extensions")
	s.Mechanism = kafka.Mechanism(mechanism.Enum("", string(kafka.Plain), string(kafka.ScramSHA256), string(kafka.ScramSHA512), string(kafka.OAuthBearer)))
	s.Username, s.Password, s.PasswordFile = username.String(""), r.secret(password), r.filePath(passwordFile)
	s.TokenFile = r.filePath(tokenFile)
	asks := r.tokenEndpoint(endpoint)
	s.Extensions = extensions.StringMap()
	m.Done()

	byPassword := []yamlnode.Node{username, password, passwordFile}
	byToken := []yamlnode.Node{tokenFile, endpoint, extensions}
	switch s.Mechanism {
	case kafka.Plain, kafka.ScramSHA256, kafka.ScramSHA512:
		unused(byToken, "is for OAUTHBEARER only, and the mechanism is "+string(s.Mechanism))
		if s.Username == "" {
			mechanism.Errorf("write username: NAME beside it", "%s needs kafka.sasl.username", s.Mechanism)
		}
		exactlyOne(mechanism, string(s.Mechanism), password, password.Exists(), passwordFile, passwordFile.Exists())
	case kafka.OAuthBearer:
		unused(byPassword, "is not for OAUTHBEARER")
		exactlyOne(mechanism, string(s.Mechanism), tokenFile, tokenFile.Exists(), endpoint, asks)
	default:
		if n.IsMap() && !mechanism.Exists() {
			n.Errorf("write mechanism: one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER", "mechanism is missing")
		}
	}
}

// tokenEndpoint tells whether the file or the environment names one.
func (r *reader) tokenEndpoint(n yamlnode.Node) bool {
	m, e := n.Map(), &r.c.Kafka.SASL.Endpoint
	address, id, scope := m.Get("url"), m.Get("client_id"), m.Get("scope")
	secret, file := m.Get("client_secret"), m.Get("client_secret_file")
	e.URL, e.ClientID, e.Scope = address.String(""), id.String(""), scope.String("")
	e.ClientSecret, e.ClientSecretFile = r.secret(secret), r.filePath(file)
	m.Done()
	if !n.IsMap() && !address.Exists() && !id.Exists() && !scope.Exists() && !secret.Exists() && !file.Exists() {
		return false
	}
	if e.URL == "" {
		n.Errorf("write url: the address that gives tokens, e.g. https://login.example.com/oauth2/token", "url is missing")
	}
	if e.ClientID == "" {
		n.Errorf("write client_id: the id that the token endpoint knows this client by", "client_id is missing")
	}
	if e.URL != "" {
		if err := checkEndpoint(e.URL); err != nil {
			address.Errorf("write https://HOST/PATH", "%v", err)
		}
	}
	exactlyOne(n, "the endpoint", secret, secret.Exists(), file, file.Exists())
	return true
}

// checkEndpoint keeps secrets out of the address, and off the network in clear.
func checkEndpoint(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("no lawful address")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the address may hold neither a name and password nor what comes after ? or #")
	case u.Scheme == "http" && isLoopback(u.Hostname()), u.Scheme == "https":
		return nil
	}
	return fmt.Errorf("%s would send the client's secret in clear", s)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// unused reports keys that have no effect.
func unused(nodes []yamlnode.Node, why string) {
	for _, n := range nodes {
		if n.Exists() {
			n.Errorf("remove it", "it %s", why)
		}
	}
}

// exactlyOne reports two of which one must be given.
func exactlyOne(at yamlnode.Node, who string, a yamlnode.Node, hasA bool, b yamlnode.Node, hasB bool) {
	switch {
	case hasA && hasB:
		b.Errorf("remove one of them", "%s is given as well", a.Path())
	case !hasA && !hasB:
		at.Errorf("", "%s needs %s or %s", who, a.Path(), b.Path())
	}
}

// filePath reads a path, and remembers where it stands.
func (r *reader) filePath(n yamlnode.Node) string {
	r.files[n.Path()] = n
	path := n.String("")
	if path == "" && n.Exists() {
		n.Errorf("", "the path is empty")
	}
	return path
}

func (r *reader) secret(n yamlnode.Node) kafka.Secret {
	s := n.Secret()
	if s == "" && n.Exists() {
		n.Errorf("", "the secret is empty")
	}
	return kafka.Secret(s)
}

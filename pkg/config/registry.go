package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/registry"
	"github.com/streamworker/streamworker/pkg/topology/format"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// schemaRegistry reads where schemas come from. Without an address there is no registry.
func (r *reader) schemaRegistry(n yamlnode.Node) format.Registry {
	m, s := n.Map(), &r.c.SchemaRegistry
	address, username, password, passwordFile, tls := m.Get("url"), m.Get("username"), m.Get("password"), m.Get("password_file"), m.Get("tls")
	for text := range strings.SplitSeq(address.String(""), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		s.URLs = append(s.URLs, text)
		if err := checkURL(text); err != nil {
			address.Errorf("write http://HOST:PORT or https://HOST:PORT", "%v", err)
		}
	}
	s.Username, s.Password, s.PasswordFile = username.String(""), r.secret(password), r.filePath(passwordFile)
	r.tls(tls, &s.TLS)
	m.Done()
	if s.Username != "" {
		exactlyOne(username, "the name", password, password.Exists(), passwordFile, passwordFile.Exists())
	} else {
		unused([]yamlnode.Node{password, passwordFile}, "has no effect without schema_registry.username")
	}
	if len(s.URLs) == 0 {
		if s.Username != "" || s.TLS != (kafka.TLS{}) {
			n.Errorf("write url: http://HOST:PORT", "url is missing")
		}
		return nil
	}
	if r.o.Offline {
		return new(format.Memory)
	}
	return registry.New(*s)
}

// checkURL keeps passwords out of addresses: these are shown.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@"), err == nil && (u.RawQuery != "" || u.Fragment != ""): // before a message that shows it
		return fmt.Errorf("the address may hold neither a name and password nor what comes after ? or #")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is no lawful address", text)
	}
	return nil
}

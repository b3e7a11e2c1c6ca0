package registry

import (
	"errors"
	"net/netip"
	"net/url"
	"time"

	"github.com/streamworker/streamworker/pkg/kafka"
)

// Settings say where a schema registry is and how to get in.
type Settings struct {
	URLs         []string // of one registry, tried in turn
	Username     string   // for HTTP basic authentication; "": none
	Password     kafka.Secret
	PasswordFile string // in place of Password
	TLS          kafka.TLS
}

// The keys of the configuration, for messages.
const (
	settingTLS          = "schema_registry.tls"
	settingPasswordFile = "schema_registry.password_file"
)

// Check reads the files that the settings name and returns what is wrong with them.
func (s Settings) Check(now time.Time) []*kafka.SettingError {
	_, err := s.password()
	return kafka.SettingErrors(errors.Join(s.TLS.Check(settingTLS, now), err))
}

func (s Settings) password() (string, error) {
	return kafka.ReadSecret(settingPasswordFile, s.Password, s.PasswordFile)
}

// SecretInClear tells whether anyone on the way to the registry can read the password.
func (s Settings) SecretInClear() bool {
	for _, text := range s.URLs {
		if u, err := url.Parse(text); s.Username != "" && err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
			return true
		}
	}
	return false
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// SettingError is a setting whose file cannot be used.
type SettingError struct {
	Setting string // e.g. "kafka.tls.ca"
	Message string // names the file
	Hint    string // what to do
	Err     error  // the cause, may be nil
}

func (e *SettingError) Error() string {
	return e.Setting + ": " + e.Message + ": " + e.Hint
}

func (e *SettingError) Unwrap() error { return e.Err }

// Check reads the files that the settings name and returns what is wrong with them.
func (c Connection) Check(now time.Time) []*SettingError {
	var found []*SettingError
	note := func(err error) { found = append(found, SettingErrors(err)...) }
	note(c.TLS.Check("kafka.tls", now))
	switch s := c.SASL; s.Mechanism {
	case Plain, ScramSHA256, ScramSHA512:
		_, err := ReadSecret("kafka.sasl.password_file", s.Password, s.PasswordFile)
		note(err)
	case OAuthBearer:
		if s.TokenFile != "" {
			_, err := ReadSecret("kafka.sasl.token_file", "", s.TokenFile)
			note(err)
		} else {
			_, err := ReadSecret("kafka.sasl.token_endpoint.client_secret_file", s.Endpoint.ClientSecret, s.Endpoint.ClientSecretFile)
			note(err)
		}
	}
	return found
}

// SettingErrors are those that err consists of.
func SettingErrors(err error) []*SettingError {
	if several, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // of errors.Join itself
		var found []*SettingError
		for _, err := range several.Unwrap() {
			found = append(found, SettingErrors(err)...)
		}
		return found
	}
	var one *SettingError
	if errors.As(err, &one) {
		return []*SettingError{one}
	}
	return nil
}

// Check reads the files. Setting is where they are named, e.g. "kafka.tls". Its errors are *SettingError, or several joined.
func (t TLS) Check(setting string, now time.Time) error {
	if !t.Enabled {
		return nil
	}
	_, caErr := t.authorities(setting)
	_, certErr := t.certificate(setting, now)
	return errors.Join(caErr, certErr)
}

// Config is that of a connection. Setting is where the files are named, e.g. "kafka.tls". Its errors are *SettingError, or several joined.
func (t TLS) Config(setting string, now time.Time) (*tls.Config, error) {
	authorities, err := t.authorities(setting)
	if err != nil {
		return nil, err
	}
	own, err := t.certificate(setting, now)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{RootCAs: authorities, ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if own != nil {
		cfg.Certificates = []tls.Certificate{*own}
	}
	return cfg, nil
}

// authorities are the certificates that vouch for the other side; nil: those that the host trusts.
func (t TLS) authorities(of string) (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	return LoadAuthorities(of+".ca", t.CA, "the other side")
}

// certificate is this client's own; nil: it has none.
func (t TLS) certificate(of string, now time.Time) (*tls.Certificate, error) {
	if t.Cert == "" || t.Key == "" {
		return nil, nil
	}
	certSetting := of + ".cert"
	cert, err := LoadPair(certSetting, of+".key", t.Cert, t.Key)
	if err != nil {
		return nil, err
	}
	if leaf := cert.Leaf; now.After(leaf.NotAfter) {
		return nil, &SettingError{Setting: certSetting, Message: fmt.Sprintf("the certificate in %s expired on %s", t.Cert, leaf.NotAfter.UTC().Format(time.RFC3339)), Hint: "renew it"}
	} else if now.Before(leaf.NotBefore) {
		return nil, &SettingError{Setting: certSetting, Message: fmt.Sprintf("the certificate in %s is valid from %s on only", t.Cert, leaf.NotBefore.UTC().Format(time.RFC3339)),
			Hint: "check this host's clock"}
	}
	return cert, nil
}

// LoadAuthorities reads the certificates that vouch for those of others, whom the message names. The error is of *SettingError.
func LoadAuthorities(setting, file, others string) (*x509.CertPool, error) {
	text, err := read(setting, file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, &SettingError{Setting: setting, Message: file + " holds no certificate", Hint: "it must be PEM, with the certificate of the authority that signed those of " + others}
	}
	return pool, nil
}

// LoadPair reads a certificate and its key. It does not look at the time. The error is of *SettingError, or joins several.
func LoadPair(certSetting, keySetting, certFile, keyFile string) (*tls.Certificate, error) {
	certPEM, certErr := read(certSetting, certFile)
	keyPEM, keyErr := read(keySetting, keyFile)
	if certErr != nil || keyErr != nil {
		return nil, errors.Join(certErr, keyErr)
	}
	if block, _ := pem.Decode(certPEM); block == nil {
		return nil, &SettingError{Setting: certSetting, Message: certFile + " holds no certificate", Hint: "it must be PEM, with the certificate itself first"}
	}
	block, _ := pem.Decode(keyPEM)
	switch {
	case block == nil:
		return nil, &SettingError{Setting: keySetting, Message: keyFile + " holds no key", Hint: "it must be PEM, with the private key of " + certSetting}
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return nil, &SettingError{Setting: keySetting, Message: keyFile + " is encrypted", Hint: "decrypt it (openssl pkey) and protect the file by its mode"}
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, &SettingError{Setting: keySetting, Message: fmt.Sprintf("%s does not go with the certificate in %s (%v)", keyFile, certFile, err),
			Hint: "give the key that the certificate was made for", Err: err}
	}
	return &cert, nil
}

// ReadSecret returns the text itself, or the content of the file without the newline at its end. Its errors are *SettingError,
// with fileSetting as where the file is named.
func ReadSecret(fileSetting string, text Secret, file string) (string, error) {
	if file == "" {
		return text.Reveal(), nil
	}
	content, err := read(fileSetting, file)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(content), "\r\n")
	if secret == "" {
		return "", &SettingError{Setting: fileSetting, Message: file + " is empty", Hint: "write the secret into it"}
	}
	return secret, nil
}

func read(setting, file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, &SettingError{Setting: setting, Message: err.Error(), Hint: "give a file that this process may read", Err: err}
	}
	return content, nil
}

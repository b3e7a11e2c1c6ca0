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

// SettingErrors are those that err is, or joins.
func SettingErrors(err error) (found []*SettingError) {
	errs := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // of errors.Join itself
		errs = several.Unwrap()
	}
	for _, err := range errs {
		if setting := (*SettingError)(nil); errors.As(err, &setting) {
			found = append(found, setting)
		}
	}
	return found
}

// Check reads the files that the settings name and returns what is wrong with them.
func (c Connection) Check(now time.Time) []*SettingError {
	var found []*SettingError
	note := func(err error) { found = append(found, SettingErrors(err)...) }
	if t := c.TLS; t.Enabled {
		_, err := t.authorities()
		note(err)
		_, err = t.certificate(now)
		note(err)
	}
	switch s := c.SASL; s.Mechanism {
	case Plain, ScramSHA256, ScramSHA512:
		_, err := secretOf("kafka.sasl.password_file", s.Password, s.PasswordFile)
		note(err)
	case OAuthBearer:
		if s.TokenFile != "" {
			_, err := secretOf("kafka.sasl.token_file", "", s.TokenFile)
			note(err)
		} else {
			_, err := secretOf("kafka.sasl.token_endpoint.client_secret_file", s.Endpoint.ClientSecret, s.Endpoint.ClientSecretFile)
			note(err)
		}
	}
	return found
}

// authorities are the certificates that vouch for brokers; nil: those that the host trusts.
func (t TLS) authorities() (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	return LoadAuthorities("kafka.tls.ca", t.CA, "the brokers")
}

// certificate is this client's own; nil: it has none.
func (t TLS) certificate(now time.Time) (*tls.Certificate, error) {
	if t.Cert == "" || t.Key == "" {
		return nil, nil
	}
	const setting = "kafka.tls.cert"
	cert, err := LoadPair(setting, "kafka.tls.key", t.Cert, t.Key)
	if err != nil {
		return nil, err
	}
	if leaf := cert.Leaf; now.After(leaf.NotAfter) {
		return nil, &SettingError{Setting: setting, Message: fmt.Sprintf("the certificate in %s expired on %s", t.Cert, leaf.NotAfter.UTC().Format(time.RFC3339)), Hint: "renew it"}
	} else if now.Before(leaf.NotBefore) {
		return nil, &SettingError{Setting: setting, Message: fmt.Sprintf("the certificate in %s is valid from %s on only", t.Cert, leaf.NotBefore.UTC().Format(time.RFC3339)),
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

// secretOf is the text itself, or the content of the file without the newline at its end.
func secretOf(fileSetting string, text Secret, file string) (string, error) {
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

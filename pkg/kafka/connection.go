package kafka

import "fmt"

// Connection says how to reach a cluster. The zero TLS and SASL mean plain text without authentication.
type Connection struct {
	Brokers []string // host:port
	TLS     TLS
	SASL    SASL
}

// TLS says how connections are encrypted, and by which certificates either side is known.
type TLS struct {
	Enabled    bool
	CA         string // file of certificates that vouch for the brokers; "": those that this host trusts
	Cert, Key  string // files of this client's certificate and its key; "": none
	ServerName string // name in the brokers' certificates; "": the host that is dialled
}

// SecretInClear tells whether anyone on the way to the brokers can read what this client proves itself by.
func (c Connection) SecretInClear() bool {
	return !c.TLS.Enabled && (c.SASL.Mechanism == Plain || c.SASL.Mechanism == OAuthBearer)
}

// Mechanism is how the client proves who it is.
type Mechanism string

// The mechanisms, as Kafka calls them.
const (
	Plain       Mechanism = "PLAIN"
	ScramSHA256 Mechanism = "SCRAM-SHA-256"
	ScramSHA512 Mechanism = "SCRAM-SHA-512"
	OAuthBearer Mechanism = "OAUTHBEARER"
)

// SASL says who the client is.
type SASL struct {
	Mechanism Mechanism // "": no authentication

	Username     string // for PLAIN and SCRAM
	Password     Secret // or
	PasswordFile string

	// For OAUTHBEARER a file that holds a token, or an endpoint that gives one.
	TokenFile  string
	Endpoint   TokenEndpoint
	Extensions map[string]string // sent with the token
}

// TokenEndpoint is where OAUTHBEARER tokens come from, by OAuth 2's client credentials.
type TokenEndpoint struct {
	URL              string // "": none
	ClientID         string
	ClientSecret     Secret // or
	ClientSecretFile string
	Scope            string // names with spaces between
}

// hidden stands for a secret wherever it is printed.
const hidden = "(hidden)"

// Secret is a text that no log, error or output shows.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the text under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) } // an error has nowhere to go

// MarshalText hides the text in JSON, YAML and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

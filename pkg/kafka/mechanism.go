package kafka

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// endpointTimeout bounds one request to a token endpoint.
const endpointTimeout = 10 * time.Second

// newMechanism returns how clients authenticate. Secrets are read for each authentication.
func (c *Connector) newMechanism() sasl.Mechanism {
	s := c.settings.SASL
	password := func() (string, error) {
		secret, err := ReadSecret("kafka.sasl.password_file", s.Password, s.PasswordFile)
		return secret, c.unavailable(err)
	}
	scrams := func(context.Context) (scram.Auth, error) {
		secret, err := password()
		return scram.Auth{User: s.Username, Pass: secret}, err
	}
	switch s.Mechanism {
	case Plain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			secret, err := password()
			return plain.Auth{User: s.Username, Pass: secret}, err
		})
	case ScramSHA256:
		return scram.Sha256(scrams)
	case ScramSHA512:
		return scram.Sha512(scrams)
	case OAuthBearer:
		tokens := oauth2.ReuseTokenSource(nil, &endpoint{settings: s.Endpoint, client: &http.Client{Timeout: endpointTimeout}})
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := s.token(tokens)
			return oauth.Auth{Token: token, Extensions: s.Extensions}, c.unavailable(err)
		})
	default:
		return nil
	}
}

// unavailable makes a missing secret a failure that running clients try to get over.
func (c *Connector) unavailable(err error) error {
	if err == nil {
		return nil
	}
	r := &refusal{text: err.Error(), err: err}
	var setting *SettingError
	var refused *oauth2.RetrieveError
	r.final = errors.As(err, &setting) || errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError
	c.warn.about(r)
	return r
}

// token is the text of the file, or what the endpoint gives.
func (s SASL) token(tokens oauth2.TokenSource) (string, error) {
	if s.TokenFile != "" {
		return ReadSecret("kafka.sasl.token_file", "", s.TokenFile)
	}
	token, err := tokens.Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

// endpoint asks for tokens; the source around it keeps one until shortly before it expires.
type endpoint struct {
	settings TokenEndpoint
	client   *http.Client
}

func (e *endpoint) Token() (*oauth2.Token, error) {
	secret, err := ReadSecret("kafka.sasl.token_endpoint.client_secret_file", e.settings.ClientSecret, e.settings.ClientSecretFile)
	if err != nil {
		return nil, err
	}
	request := clientcredentials.Config{ClientID: e.settings.ClientID, ClientSecret: secret, TokenURL: e.settings.URL, Scopes: strings.Fields(e.settings.Scope)}
	token, err := request.Token(context.WithValue(context.Background(), oauth2.HTTPClient, e.client))
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) && refused.Response != nil {
		return nil, &endpointError{refused, fmt.Sprintf("the token endpoint %s answers %s %s: check client_id, client_secret and scope in kafka.sasl.token_endpoint",
			e.settings.URL, refused.Response.Status, strings.TrimSpace(refused.ErrorCode+" "+refused.ErrorDescription))}
	}
	if err != nil {
		return nil, fmt.Errorf("the token endpoint %s gives no token: %w", e.settings.URL, err)
	}
	return token, nil
}

// endpointError is the answer of a token endpoint without its body, which may hold anything.
type endpointError struct {
	cause *oauth2.RetrieveError
	text  string
}

func (e *endpointError) Error() string { return e.text }
func (e *endpointError) Unwrap() error { return e.cause }

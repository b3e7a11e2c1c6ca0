package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/query"
)

// adminAccessFlags say what is presented to admin addresses.
type adminAccessFlags struct {
	tokenFile, ca, cert, key string
}

func (a *adminAccessFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.tokenFile, "token-file", "", "`file` with the token of the admin addresses; default: that of -c FILE, or STREAMWORKER_ADMIN_TOKEN_FILE")
	f.StringVar(&a.ca, "tls-ca", "", "PEM `file` of the authorities that vouch for admin addresses; default: the host's")
	f.StringVar(&a.cert, "tls-cert", "", "PEM `file` of a certificate for them")
	f.StringVar(&a.key, "tls-key", "", "PEM `file` of its key")
}

// token is what is presented, "" if nothing.
func (a adminAccessFlags) token(e *env, from config.Admin) (string, error) {
	file := a.tokenFile
	if file == "" {
		if from.Token != "" {
			return from.Token.Reveal(), nil
		}
		if token, ok := e.lookup(config.EnvPrefix + "ADMIN_TOKEN"); ok {
			return token, nil
		}
		if file = from.TokenFile; file == "" {
			file, _ = e.lookup(config.EnvPrefix + "ADMIN_TOKEN_FILE")
		}
	}
	if file == "" {
		return "", nil
	}
	return config.ReadToken("the admin token", file)
}

func (a adminAccessFlags) tls() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.ca != "" {
		pem, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		if cfg.RootCAs = x509.NewCertPool(); !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: %s holds no certificate in PEM form", a.ca)
		}
	}
	if a.cert != "" || a.key != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// peers are the instances of a group that can be asked.
type peers struct {
	from  source
	local *http.Client // to the instance on this host; nil: it is not the one that tells of the group
	far   *http.Client
	token string
}

// newPeers finds them by the instance on this host, or by Kafka.
func newPeers(ctx context.Context, e *env, p *place, access adminAccessFlags) (*peers, error) {
	secure, err := access.tls()
	if err != nil {
		return nil, usageError{err}
	}
	token, err := access.token(e, p.admin)
	// On this host the socket needs no token, and the file may be one for the instances only.
	if err != nil && (access.tokenFile != "" || !errors.Is(err, os.ErrPermission) && !errors.Is(err, os.ErrNotExist)) {
		return nil, err
	}
	from, err := statusCommand{env: e}.open(ctx, p)
	if err != nil {
		return nil, err
	}
	all := &peers{from: from, token: token, far: &http.Client{
		Transport:     &http.Transport{TLSClientConfig: secure, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if l, ok := from.(*local); ok {
		near := *l.client.HTTP()
		near.CheckRedirect = all.far.CheckRedirect
		all.local = &near
	}
	return all, nil
}

func (p *peers) close() {
	p.far.CloseIdleConnections()
	p.from.close()
}

// list gives those that can be asked, the one on this host first.
func (p *peers) list(ctx context.Context) ([]query.Peer, error) {
	_, statuses, _, err := p.from.read(ctx)
	if err != nil {
		return nil, err
	}
	var all []query.Peer
	for i, s := range statuses {
		switch {
		case i == 0 && p.local != nil:
			all = append(all, query.Peer{Instance: s.Instance, URL: admin.LocalURL, HTTP: p.local})
		case s.Address != "" && s.Left == "" && !s.Stale(time.Now()):
			all = append(all, query.Peer{Instance: s.Instance, URL: s.Address, HTTP: p.far})
		}
	}
	return all, nil
}

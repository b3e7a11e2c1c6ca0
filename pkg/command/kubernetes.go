package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
)

// serviceAccountDir is where a pod finds its credentials for the API server.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// kubernetesPatience is with the API server: a pod that ends has better things to do.
const kubernetesPatience = 5 * time.Second

// howKubernetesWants is how this pod is to stop, and why. A pod that ends is not told what for, but the size
// of its StatefulSet says whether it will come back. Without an answer it keeps: nothing is lost by that.
func howKubernetesWants(ctx context.Context, e *env) (config.OnTerminate, string) {
	ctx, cancel := context.WithTimeout(ctx, kubernetesPatience)
	defer cancel()
	set, err := podOf(e)
	if err != nil {
		return config.Keep, err.Error()
	}
	defer set.client.CloseIdleConnections()
	how, why, err := set.decide(ctx)
	if err != nil {
		return config.Keep, fmt.Sprintf("ask Kubernetes for the StatefulSet %s: %v", set.name, err)
	}
	return how, why
}

// statefulSet is the set that this pod belongs to.
type statefulSet struct {
	client          *http.Client
	token           string
	api             string // URL of the API server
	namespace, name string
	ordinal         int // of this pod
}

// podOf finds out by the pod's name, which is its host name, and what Kubernetes puts into every pod.
func podOf(e *env) (*statefulSet, error) {
	host, _ := e.lookup("KUBERNETES_SERVICE_HOST")
	port, _ := e.lookup("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("this is no pod of Kubernetes: KUBERNETES_SERVICE_HOST is not set")
	}
	pod, ok := e.lookup("POD_NAME")
	if !ok {
		var err error
		if pod, err = os.Hostname(); err != nil {
			return nil, err
		}
	}
	i := strings.LastIndexByte(pod, '-')
	ordinal, err := strconv.Atoi(pod[i+1:])
	if i < 1 || err != nil {
		return nil, fmt.Errorf("%s is no pod of a StatefulSet: its name has no number at the end", pod)
	}
	s := &statefulSet{api: "https://" + net.JoinHostPort(host, port), name: pod[:i], ordinal: ordinal}
	var contents [3]string
	for i, name := range []string{"token", "namespace", "ca.crt"} {
		data, err := os.ReadFile(filepath.Join(e.serviceAccount, name))
		if err != nil {
			return nil, fmt.Errorf("the pod's service account: %w", err)
		}
		contents[i] = strings.TrimSpace(string(data))
	}
	s.token, s.namespace = contents[0], contents[1]
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(contents[2])) {
		return nil, fmt.Errorf("the pod's service account: no certificate in %s", filepath.Join(e.serviceAccount, "ca.crt"))
	}
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	return s, nil
}

// decide asks for the set's size.
func (s *statefulSet) decide(ctx context.Context) (config.OnTerminate, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/apis/apps/v1/namespaces/%s/statefulsets/%s", s.api, s.namespace, s.name), nil)
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := s.client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return config.Release, "the StatefulSet " + s.name + " is gone", nil
	case http.StatusOK:
	default:
		return "", "", errors.New("the API server answers " + resp.Status)
	}
	var set struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec struct {
			Replicas *int `json:"replicas"`
			Ordinals struct {
				Start int `json:"start"`
			} `json:"ordinals"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&set); err != nil {
		return "", "", err
	}
	replicas := 1
	if set.Spec.Replicas != nil {
		replicas = *set.Spec.Replicas
	}
	first := set.Spec.Ordinals.Start
	switch {
	case set.Metadata.DeletionTimestamp != nil:
		return config.Release, "the StatefulSet " + s.name + " is being deleted", nil
	case replicas == 0:
		return config.Release, "the StatefulSet " + s.name + " was scaled to nothing", nil
	case s.ordinal < first || s.ordinal >= first+replicas:
		return config.Drain, fmt.Sprintf("the StatefulSet %s was scaled to %d, this is pod %d", s.name, replicas, s.ordinal), nil
	}
	return config.Keep, fmt.Sprintf("the StatefulSet %s has %d pods, pod %d comes back", s.name, replicas, s.ordinal), nil
}

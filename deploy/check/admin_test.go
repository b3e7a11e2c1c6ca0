package check

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/config"
	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// guarded checks that a pod finds the token where its application looks for it, and that probes speak as the address does.
// It returns name and key of the Secret.
func guarded(t *testing.T, objects map[string]runtime.Object) (secret, key string) {
	t.Helper()
	var app struct {
		Admin struct {
			TokenFile string `json:"token_file"`
			TLS       struct{ Cert string }
		}
	}
	if err := yaml.Unmarshal([]byte(objects["ConfigMap"].(*corev1.ConfigMap).Data["app.yaml"]), &app); err != nil {
		t.Fatal(err)
	}
	admin := app.Admin
	pod := objects["StatefulSet"].(*appsv1.StatefulSet).Spec.Template.Spec
	c := pod.Containers[0]
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if https := p.HTTPGet.Scheme == corev1.URISchemeHTTPS; https != (admin.TLS.Cert != "") {
			t.Errorf("the certificate is %q, a probe asks by %q", admin.TLS.Cert, p.HTTPGet.Scheme)
		}
	}
	mount := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "admin" })
	volume := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "admin" })
	if mount < 0 || volume < 0 {
		t.Fatalf("no Secret is mounted for %s", admin.TokenFile)
	}
	source := pod.Volumes[volume].Secret
	if path := filepath.Join(c.VolumeMounts[mount].MountPath, source.Items[0].Path); path != admin.TokenFile {
		t.Errorf("the Secret is at %s, the application reads %s", path, admin.TokenFile)
	}
	if *source.DefaultMode != 0o440 {
		t.Errorf("the token's mode is %o", *source.DefaultMode)
	}
	return source.SecretName, source.Items[0].Key
}

func TestManifestsNeedAToken(t *testing.T) {
	secret, key := guarded(t, plain(t))
	create := fmt.Sprintf("kubectl create secret generic %s --from-literal=%s=$(openssl rand -hex 32)\n", secret, key)
	for _, file := range []string{"../kubernetes/words.yaml", root + "/docs/deployment.md"} {
		if !strings.Contains(read(t, file), create) {
			t.Errorf("%s does not say how to make the Secret: %s", file, create)
		}
	}
}

// The chart mounts the Secret that is there, or makes one that nobody can guess.
func TestChartMakesAToken(t *testing.T) {
	v := values(t, "words-values.yaml")
	objects, err := render(t, v)
	if err != nil {
		t.Fatal(err)
	}
	if secret, key := guarded(t, objects); secret != "words-admin" || key != "token" || objects["Secret"] != nil {
		t.Errorf("mounts %s of the Secret %s, makes %v", key, secret, objects["Secret"])
	}
	delete(v, "admin")
	var tokens []string
	for range 2 {
		objects, err := render(t, v)
		if err != nil {
			t.Fatal(err)
		}
		made := objects["Secret"].(*corev1.Secret)
		secret, key := guarded(t, objects)
		token := string(made.Data[key])
		if made.Name != secret || len(token) < 32 || slices.Contains(tokens, token) {
			t.Errorf("the Secret %s has the token %q, the pod mounts %s", made.Name, token, secret)
		}
		tokens = append(tokens, token)
	}
}

// With client certificates only, there is no token to mount.
func TestChartByCertificate(t *testing.T) {
	v := values(t, "words-values.yaml")
	v["config"] = strings.Replace(v["config"].(string), "token_file: /run/secrets/streamworker/token", "tls: {cert: /c/tls.crt, key: /c/tls.key, client_ca: /c/ca.crt}", 1)
	objects, err := render(t, v)
	if err != nil {
		t.Fatal(err)
	}
	pod := objects["StatefulSet"].(*appsv1.StatefulSet).Spec.Template.Spec
	if slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil }) {
		t.Errorf("volumes %v", pod.Volumes)
	}
	if s := pod.Containers[0].ReadinessProbe.HTTPGet.Scheme; s != corev1.URISchemeHTTPS {
		t.Errorf("a probe asks by %q", s)
	}
}

// The Prometheus operator presents the token that pods are given, over TLS if they have a certificate.
func TestPodMonitor(t *testing.T) {
	v := chartutil.CoalesceTables(map[string]any{"admin": map[string]any{"existingSecret": "mine", "key": "metrics"}}, values(t, "everything-values.yaml"))
	objects, err := render(t, v)
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Spec struct {
			PodMetricsEndpoints []struct {
				Scheme        string
				Authorization struct{ Credentials corev1.SecretKeySelector }
				TLSConfig     struct{ ServerName string }
			}
		}
	}
	if err := yaml.Unmarshal(objects["PodMonitor"].(*runtime.Unknown).Raw, &monitor); err != nil {
		t.Fatal(err)
	}
	e := monitor.Spec.PodMetricsEndpoints[0]
	secret, key := guarded(t, objects)
	if c := e.Authorization.Credentials; c.Name != secret || c.Key != key || secret != "mine" || key != "metrics" {
		t.Errorf("pods have %s of %s, Prometheus presents %s of %s", key, secret, c.Key, c.Name)
	}
	if e.Scheme != "https" || e.TLSConfig.ServerName == "" {
		t.Errorf("scheme %q, TLS %+v", e.Scheme, e.TLSConfig)
	}
}

// Prometheus reads the scrape configurations of compose and of the documentation, and presents a token.
func TestScrapeConfigurations(t *testing.T) {
	doc := regexp.MustCompile(`(?m)^    rule_files:.*\n(?:    .*\n)+`).FindString(read(t, root+"/docs/deployment.md"))
	for name, text := range map[string]string{"docs/deployment.md": doc, "compose/prometheus.yml": read(t, "../compose/prometheus.yml")} {
		c, err := config.Load(text, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range c.ScrapeConfigs {
			if a := s.HTTPClientConfig.Authorization; a == nil || a.Type != "Bearer" || a.CredentialsFile == "" {
				t.Errorf("%s: authorization %+v", name, a)
			}
		}
		if len(c.ScrapeConfigs) != 1 {
			t.Errorf("%s: %d jobs", name, len(c.ScrapeConfigs))
		}
	}
	if !strings.Contains(read(t, "../compose/prometheus.yml"), "credentials_file: /run/secrets/admin_token}") {
		t.Error("compose/prometheus.yml does not read the secret admin_token of compose.yaml")
	}
}

// The documentation writes the file that Compose reads, and Git does not take it.
func TestComposeTokenFile(t *testing.T) {
	const line = `(umask 077; echo "ADMIN_TOKEN=$(openssl rand -hex 32)" > .env)` + "\n"
	for _, file := range []string{"../compose/compose.yaml", root + "/docs/deployment.md"} {
		if !strings.Contains(read(t, file), line) {
			t.Errorf("%s does not say how to make the token: %s", file, line)
		}
	}
	if !strings.Contains(read(t, root+"/.gitignore"), "\n/deploy/compose/.env\n") {
		t.Error("Git takes deploy/compose/.env")
	}
}

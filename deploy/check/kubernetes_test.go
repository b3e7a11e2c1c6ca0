package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

const chartDir = "../helm/streamworker"

func values(t *testing.T, file string) map[string]any {
	t.Helper()
	v, err := chartutil.ReadValuesFile(filepath.Join(chartDir, "ci", file))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// render is what helm template prints for the release "words", by kind.
func render(t *testing.T, v map[string]any) (map[string]runtime.Object, error) {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "words", Namespace: "default", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]runtime.Object{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			decode(t, name, files[name], objects)
		}
	}
	return objects, nil
}

// decode reads objects as strictly as the API server does under --validate=strict: unknown fields are mistakes.
func decode(t *testing.T, name, text string, into map[string]runtime.Object) {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	docs := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	for {
		buf := make([]byte, 1<<20)
		n, err := docs.Read(buf)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		doc := bytes.TrimSpace(buf[:n])
		if len(doc) == 0 {
			continue
		}
		object, kind, err := strict.Decode(doc, nil, nil)
		switch {
		case runtime.IsNotRegisteredError(err) && bytes.Contains(doc, []byte("\nkind: PodMonitor\n")): // of the Prometheus operator
			into["PodMonitor"] = &runtime.Unknown{Raw: doc}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case into[kind.Kind] != nil:
			t.Errorf("%s: a second %s", name, kind.Kind)
		default:
			into[kind.Kind] = object
		}
	}
}

func TestChart(t *testing.T) {
	for file, want := range map[string][]string{
		"words-values.yaml":      {"ConfigMap", "PodDisruptionBudget", "Role", "RoleBinding", "Service", "ServiceAccount", "StatefulSet"},
		"everything-values.yaml": {"ConfigMap", "PodDisruptionBudget", "PodMonitor", "Secret", "Service", "ServiceAccount", "StatefulSet"},
	} {
		t.Run(file, func(t *testing.T) {
			v := values(t, file)
			for _, m := range lint.All(chartDir, v, "default", true).Messages {
				if m.Severity >= support.WarningSev {
					t.Error(m)
				}
			}
			objects, err := render(t, v)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(objects)); !slices.Equal(got, want) {
				t.Errorf("it makes %v, want %v", got, want)
			}
			consistent(t, objects)
		})
	}
}

// A chart that would make something that does not work says what to write instead.
func TestChartRefuses(t *testing.T) {
	good := values(t, "words-values.yaml")["config"].(string)
	const tokenFile = ", token_file: /run/secrets/streamworker/token"
	for name, c := range map[string]struct {
		v    map[string]any
		want string
	}{
		"no config":       {map[string]any{}, "config: write"},
		"no YAML":         {map[string]any{"config": "a: ["}, "config: "},
		"loopback only":   {map[string]any{"config": strings.Replace(good, "0.0.0.0:9464", ":9464", 1)}, "0.0.0.0:9464"},
		"no token":        {map[string]any{"config": strings.Replace(good, tokenFile, "", 1)}, "token_file: /run/secrets/"},
		"another file":    {map[string]any{"config": strings.Replace(good, "/streamworker/token", "/token", 1)}, "token_file: /run/secrets/"},
		"no timeout":      {map[string]any{"config": strings.Replace(good, "scale_down_timeout: 10m", "", 1)}, "scale_down_timeout"},
		"another timeout": {map[string]any{"config": strings.Replace(good, "10m", "1h30m", 1)}, "whole seconds, minutes or hours"},
		"unknown stop":    {map[string]any{"config": good, "stop": "gently"}, "stop"},
		"unknown value":   {map[string]any{"config": good, "replica": 3}, "replica"},
	} {
		if _, err := render(t, c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func plain(t *testing.T) map[string]runtime.Object {
	t.Helper()
	const file = "../kubernetes/words.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]runtime.Object{}
	decode(t, file, string(data), objects)
	return objects
}

// neededInstances is the rule that autoscalers follow.
const neededInstances = "streamworker:needed_instances"

// scaled is what an autoscaler says of what it scales.
type scaled struct {
	of       string // kind and name
	min, max int32
	behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
}

// Each of the autoscalers scales the StatefulSet of the manifests, by the number of instances that the rule tells, and more slowly down than up.
func TestAutoscalers(t *testing.T) {
	objects := map[string]runtime.Object{}
	decode(t, "autoscale-hpa.yaml", read(t, "../kubernetes/autoscale-hpa.yaml"), objects)
	hpa := objects["HorizontalPodAutoscaler"].(*autoscalingv2.HorizontalPodAutoscaler).Spec
	external := hpa.Metrics[0].External
	if external.Metric.Name != strings.ReplaceAll(neededInstances, ":", "_") || external.Target.Type != autoscalingv2.AverageValueMetricType || external.Target.AverageValue.String() != "1" {
		t.Errorf("the HPA follows %+v", external)
	}
	keda := scaledObject(t)
	trigger := keda.Triggers[0]
	if trigger.Type != "prometheus" || trigger.MetricType != external.Target.Type || trigger.Metadata["threshold"] != "1" || !strings.HasPrefix(trigger.Metadata["query"], neededInstances+"{") {
		t.Errorf("KEDA follows %+v", trigger)
	}
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(trigger.Metadata["query"]); err != nil {
		t.Error(err)
	}
	set := plain(t)["StatefulSet"].(*appsv1.StatefulSet)
	for name, s := range map[string]scaled{
		"HPA":  {hpa.ScaleTargetRef.Kind + "/" + hpa.ScaleTargetRef.Name, *hpa.MinReplicas, hpa.MaxReplicas, hpa.Behavior},
		"KEDA": {keda.ScaleTargetRef.Kind + "/" + keda.ScaleTargetRef.Name, keda.MinReplicaCount, keda.MaxReplicaCount, keda.Advanced.Config.Behavior},
	} {
		if s.of != "StatefulSet/"+set.Name {
			t.Errorf("%s scales %s", name, s.of)
		}
		if s.min < 2 || s.max <= s.min {
			t.Errorf("%s scales from %d to %d", name, s.min, s.max)
		}
		grace := *set.Spec.Template.Spec.TerminationGracePeriodSeconds
		down := s.behavior.ScaleDown
		if *down.StabilizationWindowSeconds <= *s.behavior.ScaleUp.StabilizationWindowSeconds || int64(down.Policies[0].PeriodSeconds) < grace {
			t.Errorf("%s scales down again before what it scaled down has drained, which takes up to %d s: %+v", name, grace, down)
		}
	}
}

// kedaSpec has the fields of a ScaledObject, keda.sh/v1alpha1, that the manifest uses.
type kedaSpec struct {
	ScaleTargetRef  struct{ APIVersion, Kind, Name string }
	PollingInterval int32
	MinReplicaCount int32
	MaxReplicaCount int32
	Fallback        struct {
		FailureThreshold, Replicas int32
		Behavior                   string
	}
	Advanced struct {
		Config struct {
			Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		} `json:"horizontalPodAutoscalerConfig"`
	}
	Triggers []struct {
		Type       string
		MetricType autoscalingv2.MetricTargetType
		Metadata   map[string]string
	}
}

// scaledObject reads the manifest for KEDA: its own types would bring all of its scalers with them.
func scaledObject(t *testing.T) kedaSpec {
	t.Helper()
	text, err := yaml.ToJSON([]byte(read(t, "../kubernetes/autoscale-keda.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta
		Spec            kedaSpec
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&o); err != nil {
		t.Fatal(err)
	}
	if o.APIVersion != "keda.sh/v1alpha1" || o.Kind != "ScaledObject" || o.Metadata.Name == "" {
		t.Errorf("%+v, %s", o.TypeMeta, o.Metadata.Name)
	}
	return o.Spec
}

func TestManifests(t *testing.T) { consistent(t, plain(t)) }

// The manifests and the chart say the same, apart from what Helm adds.
func TestManifestsAreTheCharts(t *testing.T) {
	chart, err := render(t, values(t, "words-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects := plain(t)
	if got, want := slices.Sorted(maps.Keys(objects)), slices.Sorted(maps.Keys(chart)); !slices.Equal(got, want) {
		t.Fatalf("the manifests have %v, the chart %v", got, want)
	}
	for kind, object := range objects {
		a, b := fields(t, object), fields(t, chart[kind])
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s:\nmanifest %v\nchart    %v", kind, a, b)
		}
	}
}

// fields is an object without the metadata that Helm adds.
func fields(t *testing.T, o runtime.Object) map[string]any {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	strip(m)
	return m
}

func strip(m map[string]any) {
	if l, ok := m["labels"].(map[string]any); ok {
		maps.DeleteFunc(l, func(name string, _ any) bool {
			return name == "helm.sh/chart" || name == "app.kubernetes.io/version" || name == "app.kubernetes.io/managed-by"
		})
	}
	if a, ok := m["annotations"].(map[string]any); ok {
		if delete(a, "checksum/config"); len(a) == 0 {
			delete(m, "annotations")
		}
	}
	for _, v := range m {
		if inner, ok := v.(map[string]any); ok {
			strip(inner)
		}
	}
}

// consistent checks what one object says of another.
func consistent(t *testing.T, objects map[string]runtime.Object) {
	t.Helper()
	set, ok := objects["StatefulSet"].(*appsv1.StatefulSet)
	if !ok {
		t.Fatal("no StatefulSet")
	}
	pod := set.Spec.Template.Spec
	selector := labels.SelectorFromSet(set.Spec.Selector.MatchLabels)
	if !selector.Matches(labels.Set(set.Spec.Template.Labels)) {
		t.Errorf("the selector %s does not find the pods %v", selector, set.Spec.Template.Labels)
	}
	c := pod.Containers[0]
	how := c.Lifecycle.PreStop.Exec.Command[len(c.Lifecycle.PreStop.Exec.Command)-1]
	if asks := how == "kubernetes"; asks != *pod.AutomountServiceAccountToken {
		t.Errorf("stops by %s, token mounted: %t", how, *pod.AutomountServiceAccountToken)
	} else if asks {
		role := objects["Role"].(*rbacv1.Role)
		if r := role.Rules[0]; r.ResourceNames[0] != set.Name || r.Resources[0] != "statefulsets" || r.Verbs[0] != "get" {
			t.Errorf("the role allows %+v", r)
		}
		subject := objects["RoleBinding"].(*rbacv1.RoleBinding).Subjects[0]
		if subject.Name != pod.ServiceAccountName || subject.Namespace != "default" {
			t.Errorf("the role is bound to %+v", subject)
		}
	}
	if *pod.TerminationGracePeriodSeconds < 60 {
		t.Errorf("a pod has %d s to stop", *pod.TerminationGracePeriodSeconds)
	}
	if !slices.Contains(c.Args, "$(POD_NAME)") || c.Env[0].Name != "POD_NAME" {
		t.Errorf("no id from the pod: %v, %v", c.Args, c.Env)
	}
	for _, p := range []string{c.LivenessProbe.HTTPGet.Path, c.StartupProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path} {
		if p != "/livez" && p != "/readyz" {
			t.Errorf("a probe of %s", p)
		}
	}
	for _, m := range c.VolumeMounts {
		claimed := slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(v corev1.PersistentVolumeClaim) bool { return v.Name == m.Name })
		declared := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if !claimed && !declared {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
}

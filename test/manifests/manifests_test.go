// Package manifests checks the Kubernetes manifests of deploy/kubernetes: with the types of
// Kubernetes, strictly, and with the rules that a careful cluster has.
//
// It is a Go module of its own, outside of go.work, for the types of Kubernetes: "make manifests"
// runs it. That the commands of the manifests work is tested in cmd/pgagui.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decode reads the documents of a file. An unknown or repeated field is an error.
func decode(text []byte) (objects []runtime.Object, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, batch.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	for {
		document := make([]byte, len(text))
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document[:n], nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// pod is what the rules look at: the pods of a workload.
type pod struct {
	name     string
	labels   map[string]string
	selector *meta.LabelSelector // nil: of a job
	spec     core.PodSpec
	replicas int32
}

func podsOf(objects []runtime.Object) (pods []pod) {
	for _, object := range objects {
		switch object := object.(type) {
		case *apps.Deployment:
			pods = append(pods, pod{object.Name, object.Spec.Template.Labels, object.Spec.Selector, object.Spec.Template.Spec, *object.Spec.Replicas})
		case *batch.CronJob:
			template := object.Spec.JobTemplate.Spec.Template
			pods = append(pods, pod{object.Name, template.Labels, nil, template.Spec, 1})
		}
	}
	return pods
}

// The defaults of pgagui, which cmd/pgagui holds against the manifests too.
const (
	shutdownTimeout = 25 * time.Second
	grace           = 20 * time.Second
	heartbeat       = 15 * time.Second
)

// problems lists what breaks a rule.
func problems(objects []runtime.Object) (found []string) {
	add := func(format string, arguments ...any) { found = append(found, fmt.Sprintf(format, arguments...)) }
	pods := podsOf(objects)
	for _, p := range pods {
		for _, problem := range podProblems(p) {
			add("%s: %s", p.name, problem)
		}
	}
	selected := func(selector *meta.LabelSelector) (matching []pod) {
		matches, err := meta.LabelSelectorAsSelector(selector)
		if err != nil {
			add("%v", err)
			return nil
		}
		for _, p := range pods {
			if matches.Matches(labels.Set(p.labels)) {
				matching = append(matching, p)
			}
		}
		return matching
	}
	hasPort := func(p pod, port intstr.IntOrString) bool {
		return slices.ContainsFunc(p.spec.Containers[0].Ports, func(one core.ContainerPort) bool { return port.StrVal == one.Name && one.Name != "" })
	}
	services, budgets, guarded := map[string]*core.Service{}, 0, map[string]bool{}
	for _, object := range objects {
		switch object := object.(type) {
		case *core.Service:
			services[object.Name] = object
			to := selected(&meta.LabelSelector{MatchLabels: object.Spec.Selector})
			if len(to) != 1 {
				add("the Service %s selects %d workloads", object.Name, len(to))
				continue
			}
			for _, port := range object.Spec.Ports {
				if !hasPort(to[0], port.TargetPort) || port.TargetPort.StrVal == "metrics" {
					add("the Service %s leads to the port %s", object.Name, port.TargetPort.String())
				}
			}
		case *policy.PodDisruptionBudget:
			budgets++
			if to := selected(object.Spec.Selector); len(to) != 1 || object.Spec.MaxUnavailable.IntValue() < 1 {
				add("the PodDisruptionBudget %s selects %d workloads, or blocks each eviction", object.Name, len(to))
			}
		case *networking.NetworkPolicy:
			for _, to := range selected(&object.Spec.PodSelector) {
				guarded[to.name] = slices.Contains(object.Spec.PolicyTypes, networking.PolicyTypeIngress)
				for _, rule := range object.Spec.Ingress {
					for _, port := range rule.Ports {
						if len(rule.From) == 0 || !hasPort(to, *port.Port) {
							add("the NetworkPolicy %s lets everyone to the port %s", object.Name, port.Port.String())
						}
					}
				}
			}
		}
	}
	for _, p := range pods {
		if p.replicas > 1 && budgets == 0 {
			add("%s: several replicas without a PodDisruptionBudget", p.name)
		}
		if !guarded[p.name] {
			add("%s: no NetworkPolicy", p.name)
		}
	}
	for _, object := range objects {
		if ingress, isIngress := object.(*networking.Ingress); isIngress {
			for _, problem := range ingressProblems(ingress, services) {
				add("the Ingress %s: %s", ingress.Name, problem)
			}
		}
	}
	return found
}

func ingressProblems(ingress *networking.Ingress, services map[string]*core.Service) (found []string) {
	of := func(name string) string { return ingress.Annotations["nginx.ingress.kubernetes.io/"+name] }
	if of("proxy-buffering") != "off" {
		found = append(found, "it buffers streams")
	}
	for _, name := range []string{"proxy-read-timeout", "proxy-send-timeout"} {
		if timeout, err := time.ParseDuration(of(name) + "s"); err != nil || timeout <= 2*heartbeat {
			found = append(found, name+" cuts idle streams")
		}
	}
	if of("proxy-body-size") != "64m" { // --limits-max-body-bytes
		found = append(found, "its limit of a body is not that of the server")
	}
	if len(ingress.Spec.TLS) == 0 || ingress.Spec.TLS[0].SecretName == "" {
		found = append(found, "no TLS")
	}
	for _, rule := range ingress.Spec.Rules {
		for _, path := range rule.HTTP.Paths {
			service := services[path.Backend.Service.Name]
			if service == nil || !slices.ContainsFunc(service.Spec.Ports, func(port core.ServicePort) bool { return port.Name == path.Backend.Service.Port.Name }) {
				found = append(found, "its Service or port does not exist")
			}
		}
	}
	return found
}

func podProblems(p pod) (found []string) {
	check := func(isGood bool, problem string) {
		if !isGood {
			found = append(found, problem)
		}
	}
	isTrue := func(value *bool) bool { return value != nil && *value }
	isFalse := func(value *bool) bool { return value != nil && !*value }
	if p.selector != nil {
		matches, err := meta.LabelSelectorAsSelector(p.selector)
		check(err == nil && matches.Matches(labels.Set(p.labels)), "its selector does not match its own pods")
	}
	check(len(p.spec.Containers) == 1, "not one container")
	check(isFalse(p.spec.AutomountServiceAccountToken), "it has a token of the cluster")
	check(!p.spec.HostNetwork && !p.spec.HostPID && !p.spec.HostIPC, "it shares namespaces of the host")
	context := p.spec.SecurityContext
	check(context != nil && isTrue(context.RunAsNonRoot) && context.RunAsUser != nil && *context.RunAsUser > 0, "it may run as root")
	check(context != nil && context.SeccompProfile != nil && context.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault, "no seccomp profile")
	volumes := map[string]core.Volume{}
	for _, volume := range p.spec.Volumes {
		volumes[volume.Name] = volume
		check(volume.HostPath == nil, "it mounts a folder of the host")
	}
	for _, container := range p.spec.Containers {
		rights := container.SecurityContext
		check(rights != nil && isFalse(rights.AllowPrivilegeEscalation) && isTrue(rights.ReadOnlyRootFilesystem) && !isTrue(rights.Privileged), "its container has too many rights")
		check(rights != nil && rights.Capabilities != nil && slices.Equal(rights.Capabilities.Drop, []core.Capability{"ALL"}) && len(rights.Capabilities.Add) == 0, "it keeps capabilities")
		requests, limits := container.Resources.Requests, container.Resources.Limits
		check(!requests.Cpu().IsZero() && !requests.Memory().IsZero() && !limits.Memory().IsZero(), "it does not say what it takes")
		check(limits.Cpu().IsZero(), "a limit of CPU throttles streams")
		_, tag, hasTag := strings.Cut(container.Image, ":")
		check(hasTag && tag != "latest", "its image has no version")
		for _, variable := range container.Env {
			check(variable.Value == "" && variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil, "the variable "+variable.Name+" is not of a secret")
		}
		for _, mount := range container.VolumeMounts {
			_, isThere := volumes[mount.Name]
			check(isThere && mount.ReadOnly, "the mount "+mount.Name+" can be written to, or has no volume")
		}
		for _, argument := range container.Args {
			check(!strings.Contains(argument, "://"), "an address in its command line")
		}
		stops, needed := time.Duration(0), grace
		if container.Lifecycle != nil && container.Lifecycle.PreStop != nil && container.Lifecycle.PreStop.Sleep != nil {
			stops = time.Duration(container.Lifecycle.PreStop.Sleep.Seconds) * time.Second
		}
		switch name := container.Args[0]; {
		case name == "serve":
			needed = shutdownTimeout
			check(stops > 0, "load balancers send requests to a pod that ends")
			check(probes(container, container.ReadinessProbe, "/readyz"), "no readiness probe")
			check(probes(container, container.LivenessProbe, "/healthz"), "no liveness probe, or one that depends on the database")
		case name == "worker":
			check(probes(container, container.LivenessProbe, "/metrics"), "no liveness probe")
		case name == "job" && container.Args[1] == "reap":
			needed = 0 // each run is a transaction of its own
		}
		seconds := p.spec.TerminationGracePeriodSeconds
		check(needed == 0 || seconds != nil && time.Duration(*seconds)*time.Second > stops+needed, "it is killed before it has stopped in order")
	}
	return found
}

func probes(container core.Container, probe *core.Probe, path string) bool {
	return probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Path == path &&
		slices.ContainsFunc(container.Ports, func(port core.ContainerPort) bool { return port.Name == probe.HTTPGet.Port.StrVal })
}

func manifests(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

func TestManifestsFollowTheRules(t *testing.T) {
	kinds := map[string]int{}
	for file, text := range manifests(t) {
		objects, err := decode([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, object := range objects {
			kinds[object.GetObjectKind().GroupVersionKind().Kind]++
		}
		for _, problem := range problems(objects) {
			t.Errorf("%s: %s", file, problem)
		}
	}
	if fmt.Sprint(kinds) != "map[CronJob:2 Deployment:2 Ingress:1 NetworkPolicy:4 PodDisruptionBudget:1 Service:1]" {
		t.Error(kinds)
	}
}

// Each rule finds what it is for.
func TestRulesFindWhatIsWrong(t *testing.T) {
	serve, worker := manifests(t)["serve.yaml"], manifests(t)["worker.yaml"]
	for _, test := range []struct{ text, from, to, want string }{
		{serve, "replicas: 2", "replica: 2", `unknown field "spec.replica"`},
		{serve, "replicas: 2", "replicas: two", "cannot unmarshal"},
		{serve, "runAsNonRoot: true", "runAsNonRoot: false", "it may run as root"},
		{serve, "runAsUser: 65532", "runAsUser: 0", "it may run as root"},
		{serve, "seccompProfile: {type: RuntimeDefault}", "", "no seccomp profile"},
		{serve, "automountServiceAccountToken: false", "", "a token of the cluster"},
		{serve, "readOnlyRootFilesystem: true", "", "too many rights"},
		{serve, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "too many rights"},
		{serve, "{drop: [ALL]}", "{drop: [ALL], add: [NET_RAW]}", "it keeps capabilities"},
		{serve, "terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 30", "killed before it has stopped"},
		{serve, "sleep: {seconds: 5}", "sleep: {seconds: 15}", "killed before it has stopped"},
		{serve, "path: /readyz", "path: /healthz", "no readiness probe"},
		{serve, "path: /healthz, port: http", "path: /readyz, port: http", "no liveness probe"},
		{serve, "limits: {memory: 512Mi}", "", "what it takes"},
		{serve, "limits: {memory: 512Mi}", "limits: {memory: 512Mi, cpu: 1}", "throttles streams"},
		{serve, "pgagui:v1.4.0", "pgagui:latest", "no version"},
		{serve, "secretKeyRef: {name: pgagui, key: database-url}", "configMapKeyRef: {name: pgagui, key: database-url}", "not of a secret"},
		{serve, "subPath: serve.yaml, readOnly: true", "subPath: serve.yaml", "can be written to"},
		{serve, "{name: http, port: 80, targetPort: http}", "{name: http, port: 80, targetPort: metrics}", "leads to the port metrics"},
		{serve, "selector: {app: pgagui-serve}", "selector: {app: pgagui}", "selects 0 workloads"},
		{serve, "maxUnavailable: 1\n", "maxUnavailable: 0\n", "blocks each eviction"},
		{serve, "kind: PodDisruptionBudget", "kind: PodDisruptionBudgets", "no kind"},
		{serve, `proxy-buffering: "off"`, `proxy-buffering: "on"`, "buffers streams"},
		{serve, `proxy-read-timeout: "3600"`, `proxy-read-timeout: "20"`, "cuts idle streams"},
		{serve, "name: pgagui-serve\n                port: {name: http}", "name: pgagui-serve\n                port: {name: metrics}", "does not exist"},
		{serve, "- {port: metrics}", "- {port: other}", "lets everyone"},
		{worker, "matchLabels: {app: pgagui-worker}\n  policyTypes", "matchLabels: {app: worker}\n  policyTypes", "no NetworkPolicy"},
		{worker, "path: /metrics", "path: /", "no liveness probe"},
		{worker, "terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 20", "killed before"},
		{worker, `"worker", `, `"worker", "--database-url", "postgres://u:secret@h/d", `, "an address in its command line"},
		{worker, "replicas: 1", "replicas: 2", "without a PodDisruptionBudget"},
	} {
		if !strings.Contains(test.text, test.from) {
			t.Errorf("%q is not in the manifest", test.from)
			continue
		}
		objects, err := decode([]byte(strings.Replace(test.text, test.from, test.to, 1)))
		found := strings.Join(problems(objects), "\n")
		if err != nil {
			found = err.Error()
		}
		if !strings.Contains(found, test.want) {
			t.Errorf("%q in place of %q: found %q, want %q", test.to, test.from, found, test.want)
		}
	}
}

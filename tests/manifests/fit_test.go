package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A podful is whatever makes pods: all kinds have this part alike.
type podful struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector *metav1.LabelSelector          `json:"selector"`
		Template corev1.PodTemplateSpec         `json:"template"`
		Claims   []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	} `json:"spec"`
}

// An example is all of the manifests, by what they are for each other.
type example struct {
	*testing.T
	makers   []podful
	services []corev1.Service
	settings map[string]corev1.ConfigMap
	secrets  map[string]corev1.Secret
}

func exampleOf(t *testing.T) example {
	t.Helper()
	e := example{T: t, settings: map[string]corev1.ConfigMap{}, secrets: map[string]corev1.Secret{}}
	for _, d := range decoded(t) {
		switch o := d.object.(type) {
		case *corev1.Service:
			e.services = append(e.services, *o)
		case *corev1.ConfigMap:
			e.settings[o.Name] = *o
		case *corev1.Secret:
			e.secrets[o.Name] = *o
		default:
			if d.kind.Group == "apps" || d.kind.Group == "batch" {
				e.makers = append(e.makers, as[podful](t, d))
			}
		}
	}
	return e
}

// Each object that one of them names is there, and those that choose by labels choose somebody.
func TestManifestsFit(t *testing.T) {
	e := exampleOf(t)
	for _, m := range e.makers {
		e.chooses(m)
		for _, c := range m.Spec.Template.Spec.Containers {
			e.container(m, c)
		}
	}
	for _, s := range e.services {
		e.serves(s)
	}
	if len(e.makers) != 5 || len(e.services) != 1 {
		t.Errorf("%d kinds of pods, %d services", len(e.makers), len(e.services))
	}
}

func (e example) chooses(m podful) {
	if m.Spec.Selector == nil { // a job's is made by the server
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(m.Spec.Selector)
	if err != nil {
		e.Fatal(err)
	}
	for _, other := range e.makers {
		if chosen := selector.Matches(labels.Set(other.Spec.Template.Labels)); chosen != (other.Name == m.Name) {
			e.Errorf("%s chooses the pods of %s: %v", m.Name, other.Name, chosen)
		}
	}
}

func (e example) serves(s corev1.Service) {
	chosen := 0
	for _, m := range e.makers {
		if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(m.Spec.Template.Labels)) {
			continue
		}
		chosen++
		for _, p := range s.Spec.Ports {
			if !slices.Contains(portNames(m), p.TargetPort.String()) {
				e.Errorf("service %s: %s has no port %s", s.Name, m.Name, p.TargetPort.String())
			}
		}
	}
	if chosen != 1 {
		e.Errorf("service %s is for %d kinds of pods", s.Name, chosen)
	}
}

func portNames(m podful) (names []string) {
	for _, c := range m.Spec.Template.Spec.Containers {
		for _, p := range c.Ports {
			names = append(names, p.Name)
		}
	}
	return names
}

// container looks at what one of a pod's is given.
func (e example) container(m podful, c corev1.Container) {
	for _, from := range c.EnvFrom {
		if ref := from.ConfigMapRef; ref != nil && e.settings[ref.Name].Name == "" {
			e.Errorf("%s: no settings %q", m.Name, ref.Name)
		}
		if ref := from.SecretRef; ref != nil {
			e.given(m, ref.Name)
		}
	}
	for _, v := range c.Env {
		e.variable(m, v)
	}
	for _, mount := range c.VolumeMounts {
		e.mount(m, mount)
	}
	for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
		if probe != nil && !slices.Contains(portNames(m), probe.TCPSocket.Port.String()) {
			e.Errorf("%s: no port %s to be probed", m.Name, probe.TCPSocket.Port.String())
		}
	}
	named := e.variables(c)
	for _, arg := range c.Args {
		e.argument(m, named, arg)
	}
}

// given is a secret all of whose keys become variables: none but keys for others may be among them.
func (e example) given(m podful, name string) {
	s, there := e.secrets[name]
	if !there {
		e.Errorf("%s: no secret %q", m.Name, name)
	}
	for key := range s.Data {
		if !strings.HasSuffix(key, "_KEY") && !strings.HasSuffix(key, "_KEY_ID") {
			e.Errorf("%s is given %q as a variable", m.Name, key)
		}
	}
}

func (e example) variable(m podful, v corev1.EnvVar) {
	if v.ValueFrom == nil || v.ValueFrom.SecretKeyRef == nil {
		return
	}
	ref := v.ValueFrom.SecretKeyRef
	if len(e.secrets[ref.Name].Data[ref.Key]) == 0 {
		e.Errorf("%s: %s: secret %q has no %q", m.Name, v.Name, ref.Name, ref.Key)
	}
}

func (e example) mount(m podful, mount corev1.VolumeMount) {
	for _, claim := range m.Spec.Claims {
		if claim.Name == mount.Name {
			return
		}
	}
	at := slices.IndexFunc(m.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if at < 0 {
		e.Errorf("%s: no volume %q", m.Name, mount.Name)
		return
	}
	secret := m.Spec.Template.Spec.Volumes[at].Secret
	if secret == nil {
		return
	}
	for _, item := range secret.Items {
		if len(e.secrets[secret.SecretName].Data[item.Key]) == 0 {
			e.Errorf("%s: secret %q has no %q", m.Name, secret.SecretName, item.Key)
		}
	}
}

// variables are the names of all that a container has.
func (e example) variables(c corev1.Container) (names []string) {
	for _, v := range c.Env {
		names = append(names, v.Name)
	}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			names = slices.AppendSeq(names, maps.Keys(e.settings[from.ConfigMapRef.Name].Data))
		}
	}
	return names
}

// argument looks at the variables in a flag: one that is not there stays as it is written.
func (e example) argument(m podful, variables []string, arg string) {
	for _, part := range strings.Split(arg, "$(")[1:] {
		name, _, closed := strings.Cut(part, ")")
		if !closed || !slices.Contains(variables, name) {
			e.Errorf("%s: %s: no variable %q", m.Name, arg, name)
		}
	}
}

// A pod is given longer to end than a call may take, and the hubs' names are in the join line.
func TestManifestsAgreeOnTimesAndNames(t *testing.T) {
	e := exampleOf(t)
	timeout, err := time.ParseDuration(e.settings["headrace"].Data["HEADRACE_TIMEOUT"])
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range e.makers {
		grace := m.Spec.Template.Spec.TerminationGracePeriodSeconds
		works := strings.HasSuffix(m.Name, "-worker") || strings.HasSuffix(m.Name, "-keeper")
		if works && (grace == nil || time.Duration(*grace)*time.Second <= timeout) {
			t.Errorf("%s ends before its calls may", m.Name)
		}
	}
	join := string(e.secrets["headrace"].Data["cluster"])
	for n := range 3 {
		host := fmt.Sprintf("headrace-hub-%d.%s:4222", n, e.services[0].Name)
		if !strings.Contains(join, host) || !e.peers(fmt.Sprintf("headrace-hub-%d.%s:6222", n, e.services[0].Name)) {
			t.Errorf("%s is not named", host)
		}
	}
	if token := string(e.secrets["headrace"].Data["token"]); !strings.HasPrefix(join, "nats://"+token+"@") || len(token) < 32 {
		t.Errorf("the join line does not begin with the token")
	}
}

// peers reports whether a hub gets an address.
func (e example) peers(address string) bool {
	for _, m := range e.makers {
		for _, arg := range m.Spec.Template.Spec.Containers[0].Args {
			if list, is := strings.CutPrefix(arg, "--peers="); is {
				return slices.Contains(strings.Split(list, ","), address)
			}
		}
	}
	return false
}

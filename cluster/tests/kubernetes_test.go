package tests

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/headrace/headrace/cluster/store/s3test"
)

const kubernetes = "../../examples/cluster/kubernetes"

// A manifest is what the test reads of one: command lines and values.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct{ Args []string }
			}
		}
	}
}

// manifests are all of the example by kind and name, and those that its script prints.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kubernetes, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	secrets := exec.Command("./secret.sh")
	secrets.Dir = kubernetes
	printed, err := secrets.Output()
	if err != nil {
		t.Fatal(err)
	}
	texts := [][]byte{printed}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	all := map[string]manifest{}
	for _, text := range texts {
		for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var m manifest
			if err := yaml.Unmarshal(part, &m); err != nil {
				t.Fatal(err)
			}
			all[m.Kind+" "+m.Metadata.Name] = m
		}
	}
	return all
}

// The command lines of the manifests for Kubernetes work as they stand: three hubs, a worker and a keeper, a job of a prefix, and
// its results in the bucket. Only names of hosts, folders and the bucket are those of this machine.
func TestKubernetesCommandLines(t *testing.T) {
	t.Parallel()
	f := unstarted(t, plan{bucket: true, inFlight: 64, provider: slow})
	f.command = command(t)
	all := manifests(t)
	secret := func(name string) string {
		text, err := base64.StdEncoding.DecodeString(all["Secret headrace"].Data[name])
		if err != nil || len(text) == 0 {
			t.Fatalf("no secret %s: %v", name, err)
		}
		return string(text)
	}
	here := strings.NewReplacer("my-bucket", s3test.Bucket)
	hosts := []string{}
	for _, n := range []string{"0", "1", "2"} {
		listen, route := freePort(t), freePort(t)
		hosts = append(hosts, "headrace-hub-"+n+".headrace-hub:4222", listen, "headrace-hub-"+n+".headrace-hub:6222", route)
	}
	hosted := strings.NewReplacer(hosts...)
	settings := all["ConfigMap headrace"].Data
	f.env = append(f.env, "AWS_ENDPOINT_URL_S3="+f.bucket.Endpoint, "HEADRACE_CLUSTER="+hosted.Replace(secret("cluster")), "HEADRACE_TIMEOUT="+settings["HEADRACE_TIMEOUT"])
	store := here.Replace(settings["STORE"])
	start := func(maker, name string, further ...string) *process {
		args := append([]string{}, all[maker].Spec.Template.Spec.Containers[0].Args...)
		for i := range args {
			args[i] = hosted.Replace(here.Replace(strings.ReplaceAll(args[i], "$(STORE)", store)))
		}
		p := f.process(name, append(args, further...)...)
		p.start()
		return p
	}
	for n, name := range []string{"headrace-hub-0", "headrace-hub-1", "headrace-hub-2"} {
		dir, tls := filepath.Join(f.dir, name), filepath.Join(f.dir, name, "shared")
		if err := os.MkdirAll(tls, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, at := range map[string]string{"token": dir, "ca.pem": tls, "ca.key": tls} {
			if err := os.WriteFile(filepath.Join(at, file), []byte(secret(file)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// What a pod has of its own: its addresses, its name, its disk and where the secret is mounted.
		start("StatefulSet headrace-hub", name, "--listen="+everywhere(hosts[4*n+1]), "--route="+everywhere(hosts[4*n+3]), "--name="+name, "--advertise=127.0.0.1", "--dir="+dir, "--tls-dir="+tls)
	}
	// Who calls whom is the cluster's own, and so the judge instead of a provider with a key.
	whom := []string{"--base-url", f.judge.base("worker")}
	start("Deployment headrace-keeper", "keeper", whom...)
	start("Deployment headrace-worker", "worker", whom...)
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		var text []byte
		for i := range 50 {
			text = fmt.Appendf(text, "{\"prompt\":\"%s %d\"}\n", name, i)
		}
		f.bucket.Put(t, "prompts/"+name, text)
	}
	for _, n := range []string{"1", "2"} { // a pod that was taken away is started again
		if code := start("Job headrace-submit", "submit"+n).ends(comeUp); code != 0 {
			t.Fatalf("submit: exit %d", code)
		}
	}
	if text, code := f.run("jobs", "watch", "prompts", "--store", store); code != 0 {
		t.Fatalf("jobs watch: exit %d: %s", code, text)
	}
	for _, n := range []string{"1", "2"} {
		if code := start("Job headrace-fetch", "fetch"+n).ends(comeUp); code != 0 {
			t.Fatalf("fetch: exit %d", code)
		}
	}
	local := filepath.Join(f.dir, "local.jsonl")
	if text, code := f.run("jobs", "fetch", "prompts", "--store", store, "-o", local); code != 0 {
		t.Fatalf("jobs fetch: exit %d: %s", code, text)
	}
	if n := linesOf(t, local); n != 100 {
		t.Errorf("%d results, want 100", n)
	}
	want, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.bucket.Folder("results/results.jsonl"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes are in the bucket, want those of the %d here: %v", len(got), len(want), err)
	}
	f.calledOnce(100)
}

// everywhere is a port on all addresses of the machine: as in a pod, and so with TLS.
func everywhere(address string) string {
	return "0.0.0.0" + address[strings.LastIndexByte(address, ':'):]
}

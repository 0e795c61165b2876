//go:build linux

package tests

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/store/s3test"
	"go.yaml.in/yaml/v3"
)

// What the page and the examples tell people to type is there: each command, and each of its flags.
func TestPageAndExamplesNameWhatIsThere(t *testing.T) {
	checked := 0
	for _, file := range []string{
		"../../docs/cluster.md", "../../docs/serve.md", "../README.md", "../../examples/cluster/laptop.sh", "../../examples/cluster/compose.yaml",
		"../../examples/cluster/kubernetes/hub.yaml", "../../examples/cluster/kubernetes/worker.yaml", "../../examples/cluster/kubernetes/submit.yaml",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, flags := range typed(string(text)) {
			checked++
			help := helpOf(t, name)
			for _, flag := range flags {
				if !regexp.MustCompile(`(?m)` + regexp.QuoteMeta(flag) + `\b`).MatchString(help) {
					t.Errorf("%s: headrace %s has no %s", filepath.Base(file), name, flag)
				}
			}
		}
	}
	if checked < 12 {
		t.Errorf("%d commands were found", checked)
	}
}

// subcommands are those that have commands of their own.
var subcommands = []string{"jobs", "limits", "cluster"}

// known are the commands that are looked for.
var known = []string{"hub", "worker", "submit", "run", "sim", "jobs", "limits", "cluster", "serve"}

var (
	// A command begins behind the name of the program, or a manifest's list of arguments, and ends
	// with its line; a line that ends in a backslash goes on.
	commandLine = regexp.MustCompile(`(?:headrace"?|args: \[|command: \[|entrypoint: \[sh, -c, '.*exec headrace) ?([a-z]+)((?:\\\n|[^\n` + "`" + `])*)`)
	flagWord    = regexp.MustCompile(`(?:^|[\s\[,])(--?[a-z][a-z-]*)`)
	listed      = regexp.MustCompile(`(?m)^ +- ([a-z]+)\n((?: +(?:- --.*|#.*)\n)+)`)
)

// typed are the commands in a text, and the flags that they are given.
func typed(text string) map[string][]string {
	all := map[string][]string{}
	take := func(name, rest string) {
		if !slices.Contains(known, name) {
			return
		}
		words := strings.Fields(rest)
		if slices.Contains(subcommands, name) && len(words) > 0 && regexp.MustCompile(`^[a-z-]+$`).MatchString(words[0]) {
			name += " " + words[0]
		}
		rest, _, _ = strings.Cut(rest, " #")
		if _, there := all[name]; !there {
			all[name] = nil
		}
		for _, flag := range flagWord.FindAllStringSubmatch(rest, -1) {
			all[name] = append(all[name], flag[1])
		}
	}
	for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
		take(m[1], m[2])
	}
	for _, m := range listed.FindAllStringSubmatch(text, -1) {
		take(m[1], m[2])
	}
	return all
}

func TestTypedFindsCommands(t *testing.T) {
	got := typed("\"$headrace\" hub --listen x \\\n  --dir y 2>z &\n`headrace jobs watch JOB --json` and headrace is a word\n          args: [worker, --keeper=never]\n            - submit\n            - --weight=1\n            - --store=x\n")
	want := map[string]string{"hub": "--listen --dir", "jobs watch": "--json", "worker": "--keeper", "submit": "--weight --store"}
	for name, flags := range want {
		if strings.Join(got[name], " ") != flags {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%q", got)
	}
}

func helpOf(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command(command(t), append(strings.Fields(name), "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("headrace %s --help: %v: %s", name, err, out)
	}
	return string(out)
}

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
	vendorFlags := []string{"--base-url", f.judge.base("worker")}
	start("Deployment headrace-keeper", "keeper", vendorFlags...)
	start("Deployment headrace-worker", "worker", vendorFlags...)
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

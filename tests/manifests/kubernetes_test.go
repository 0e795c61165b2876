package manifests

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/openapi/openapitest"
	"sigs.k8s.io/yaml"
)

const folder = "../../examples/cluster/kubernetes"

// A document is one object of a manifest.
type document struct {
	file   string
	text   []byte
	object runtime.Object
	kind   schema.GroupVersionKind
}

// decoder knows the kinds that the examples use, and refuses what they do not have.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, known, known, serializer.SerializerOptions{Yaml: true, Strict: true})
}

// manifests are all documents of the example, and those that its script prints.
func manifests(t *testing.T) (all []document) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d manifests: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, split(filepath.Base(file), text)...)
	}
	return append(all, split("secret.sh", secrets(t))...)
}

// secrets are what secret.sh prints. It is given two keys, and none of the others.
func secrets(t *testing.T) []byte {
	t.Helper()
	cmd := exec.Command("./secret.sh")
	cmd.Dir = folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=sk-1 2", "AWS_ACCESS_KEY_ID=AK"}
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("secret.sh: %v", err)
	}
	return text
}

func split(file string, text []byte) (all []document) {
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		all = append(all, document{file: file, text: part})
	}
	return all
}

// decoded decodes the manifests. Each document is of a known kind. Every field is one of that kind, stands there
// once, and has the right type.
func decoded(t *testing.T) []document {
	t.Helper()
	d, all := decoder(t), manifests(t)
	for i := range all {
		object, kind, err := d.Decode(all[i].text, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", all[i].file, err)
		}
		all[i].object, all[i].kind = object, *kind
	}
	return all
}

// schemas are the API's own, by group and version.
func schemas(t *testing.T) map[string]any {
	t.Helper()
	paths, err := openapitest.NewEmbeddedFileClient().Paths()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for path, group := range paths {
		text, err := group.Schema(runtime.ContentTypeJSON)
		if err != nil {
			t.Fatal(err)
		}
		if all[path], err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// pathOf returns the path at which the API serves a group's schema.
func pathOf(kind schema.GroupVersionKind) string {
	if kind.Group == "" {
		return "api/" + kind.Version
	}
	return "apis/" + kind.Group + "/" + kind.Version
}

// definition finds a kind's schema within its group's.
func definition(t *testing.T, group any, kind schema.GroupVersionKind) string {
	t.Helper()
	components, _ := group.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for name, body := range components {
		marks, _ := body.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		for _, mark := range marks {
			m := mark.(map[string]any)
			if m["group"] == kind.Group && m["version"] == kind.Version && m["kind"] == kind.Kind {
				return "#/components/schemas/" + name
			}
		}
	}
	t.Fatalf("no schema of %v", kind)
	return ""
}

// broken says what is wrong with an object by the schema of its kind.
func broken(t *testing.T, all map[string]any, kind schema.GroupVersionKind, text []byte) error {
	t.Helper()
	group, path := all[pathOf(kind)], "openapi://kubernetes/"+pathOf(kind)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4) // OpenAPI 3.0's schemas are nearest to it
	if err := c.AddResource(path, group); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(path + definition(t, group, kind))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	object, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return compiled.Validate(object)
}

// Every object has what its schema asks for.
func TestManifestsKeepTheirSchemas(t *testing.T) {
	all, checked := schemas(t), 0
	for _, d := range decoded(t) {
		if all[pathOf(d.kind)] == nil {
			t.Logf("%s: %s is known by its fields alone", d.file, d.kind.Kind)
			continue
		}
		if err := broken(t, all, d.kind, d.text); err != nil {
			t.Errorf("%s: %v", d.file, err)
		}
		checked++
	}
	if checked < 8 {
		t.Errorf("%d objects were checked", checked)
	}
}

// The two checks find what they are there to find.
func TestChecksNoticeMistakes(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(folder, "submit.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	job, all := schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, schemas(t)
	if err := broken(t, all, job, whole); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new string }{
		{"a field that is not there", "restartPolicy:", "restartsPolicy:"},
		{"a field twice", "backoffLimit: 4", "backoffLimit: 4\n  backoffLimit: 1"},
		{"a field that is missing", "- name: submit\n          image", "- image"},
		{"another type", "backoffLimit: 4", "backoffLimit: none"},
		{"no quantity", "cpu: 100m", "cpu: lots"},
	} {
		text := bytes.Replace(whole, []byte(c.old), []byte(c.new), 1)
		if bytes.Equal(text, whole) {
			t.Fatalf("%s: nothing was changed", c.name)
		}
		_, _, unknown := decoder(t).Decode(text, nil, nil)
		if unknown == nil && broken(t, all, job, text) == nil {
			t.Errorf("%s is not noticed", c.name)
		}
	}
}

// as is an object's spec in another form, for what all kinds with pods have alike.
func as[T any](t *testing.T, d document) (out T) {
	t.Helper()
	text, err := json.Marshal(d.object)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

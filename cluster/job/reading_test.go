package job

import (
	"reflect"
	"testing"

	"github.com/headrace/headrace/batch/prompts"
)

// waysOfFields names, for each setting of a reader, its way to the workers of a job.
var waysOfFields = map[string]string{
	"DefaultModel": byRecord, "DefaultEndpoint": byRecord, "System": byRecord, "MaxLine": byRecord, "Params": byRecord, "Template": byRecord,
	"Name": byInput, "Format": byInput,
	"Limit":  "node.Submit takes it: the index of the job ends there",
	"Serves": "the provider of the worker's account decides", "Takes": "the same",
	"Checked": "the index decides", "Passing": "each reader decides", "NoKeys": "the same",
	"Plain": "the chunk decides", "Section": "the same", "More": "the index decides", "Note": "the same",
}

const (
	byRecord = "Reading.Config"
	byInput  = "Input.ReaderOf"
)

// No setting of a reader is lost on its way to a worker: a job would silently read other lines than a run does.
func TestEverySettingOfAReaderReachesWorkers(t *testing.T) {
	r := Reading{Template: "{{.x}}", System: "s", Model: "m", Endpoint: "/e", MaxLine: 9, Params: []prompts.Param{{Name: "n"}}}
	in := Input{Name: "in", Format: CSV}
	cfg, err := r.Config()
	if err == nil {
		cfg, err = in.ReaderOf(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	of := reflect.ValueOf(cfg)
	for i := range of.NumField() {
		name := of.Type().Field(i).Name
		way, known := waysOfFields[name]
		if !known {
			t.Errorf("prompts.Config.%s: say in waysOfFields how it reaches a worker, or have submit refuse its flag", name)
		}
		if carried := !of.Field(i).IsZero(); carried != (way == byRecord || way == byInput) {
			t.Errorf("prompts.Config.%s: carried is %t, and its way is %q", name, carried, way)
		}
	}
}

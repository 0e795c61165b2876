package manifests

import (
	"slices"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// The compose file is one, by compose's own reader, and its parts fit.
func TestComposeFile(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../../examples/cluster/compose.yaml"},
		cli.WithEnv([]string{"OPENAI_API_KEY=k"}), cli.WithProfiles([]string{"job"}), cli.WithInterpolation(true), cli.WithConsistency(true), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := project.ServiceNames()
	slices.Sort(names)
	if !slices.Equal(names, []string{"hub", "sim", "submit", "worker"}) {
		t.Errorf("services %v", names)
	}
	worker := project.Services["worker"]
	if key := worker.Environment["OPENAI_API_KEY"]; key == nil || *key != "k" {
		t.Error("the worker has no key")
	}
	if *worker.Deploy.Replicas != 3 || time.Duration(*worker.StopGracePeriod) <= 2*time.Minute {
		t.Errorf("%d workers, which end within %v: a call may take two minutes", *worker.Deploy.Replicas, worker.StopGracePeriod)
	}
	for _, name := range []string{"worker", "submit"} {
		if w := project.Services[name].DependsOn["hub"]; w.Condition != types.ServiceConditionHealthy {
			t.Errorf("%s does not wait for the hub's join line", name)
		}
		if len(project.Services[name].Volumes) == 0 || project.Services["hub"].HealthCheck == nil {
			t.Errorf("%s reads no join line", name)
		}
	}
}

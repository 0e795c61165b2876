package promptfile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

func askModel(id, model, prompt string) string {
	return fmt.Sprintf(`{"id":%q,"prompt":%q,"model":%q}`, id, prompt, model)
}

// bodies returns the total length of the bodies of a file's items, in bytes, for the items
// that belong.
func (d *desk) bodies(belongs func(*prompts.Request) bool) (n int64) {
	d.t.Helper()
	in, err := File(d.in)
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = Scan(in, prompts.Config{}, nil, func(r prompts.Request) {
		if belongs(&r) {
			n += int64(len(r.Body))
		}
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// A plan tells what is left by lane, in items and in bytes of their bodies: two models may
// share one, and what has ended in an earlier run does not count, unless it failed and is
// tried again.
func TestPlanTellsWorkByLane(t *testing.T) {
	d := newDesk(t,
		askModel("a", "big-1", "p"), askModel("b", "small", strings.Repeat("long ", 100)),
		askModel("c", "big-2", "pp"), askModel("d", "small", "q"), askModel("e", "big-1", "ppp"))
	d.cfg.Lane = func(model string) string { return "at/" + strings.SplitN(model, "-", 2)[0] }
	size := func(ids string) int64 {
		return d.bodies(func(r *prompts.Request) bool { return strings.Contains(ids, r.ID) })
	}
	plan := func() []Work {
		t.Helper()
		job := d.open()
		p, err := job.Plan()
		if err != nil || job.Close() != nil {
			t.Fatal(err)
		}
		items := 0
		for _, w := range p.Work {
			items += w.Items
		}
		if items != p.Left() {
			t.Errorf("%d items in %+v, %d left", items, p.Work, p.Left())
		}
		return p.Work
	}
	want := []Work{{"at/big", 3, size("ace")}, {"at/small", 2, size("bd")}}
	if got := plan(); !slices.Equal(got, want) {
		t.Errorf("at first: %+v, want %+v", got, want)
	}
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID == "d" {
			return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: 400}
		}
		return good, nil
	}
	d.cfg.Reader.Limit = 4
	_, _, _ = d.run() // one fails, as it is to
	d.cfg.Reader.Limit = 0
	if got, want := plan(), []Work{{"at/big", 1, size("e")}}; !slices.Equal(got, want) {
		t.Errorf("after all but the last: %+v, want %+v", got, want)
	}
	d.cfg.RetryFailed = true
	if got, want := plan(), []Work{{"at/small", 1, size("d")}, {"at/big", 1, size("e")}}; !slices.Equal(got, want) {
		t.Errorf("with what failed: %+v, want %+v", got, want)
	}
}

// However many models an input names, the plan counts the first 32 lanes apart, and the
// sums are whole. A lane that is itself called other is part of OtherLanes.
func TestPlanBoundsLanes(t *testing.T) {
	var lines []string
	for n := range 3 {
		for model := range 100 {
			lines = append(lines, askModel(fmt.Sprint(n, "-", model), fmt.Sprint("m", model), "p"))
		}
	}
	lines = append(lines, askModel("x", "other", "p"))
	d := newDesk(t, lines...)
	job := d.open()
	defer func() { _ = job.Close() }()
	p, err := job.Plan()
	if err != nil || len(p.Work) != 33 {
		t.Fatalf("%d lanes, %v", len(p.Work), err)
	}
	var bytes int64
	for i, w := range p.Work[:32] {
		if w.Lane != fmt.Sprint("m", i) || w.Items != 3 {
			t.Errorf("lane %d is %+v", i, w)
		}
		bytes += w.Bytes
	}
	other := p.Work[32]
	if other.Lane != OtherLanes || other.Items != 3*68+1 || bytes+other.Bytes != d.bodies(func(*prompts.Request) bool { return true }) {
		t.Errorf("%+v, and %d bytes", other, bytes)
	}
}

// A stream is not read ahead: what there is to do is not known.
func TestPlanOfAStreamTellsNoWork(t *testing.T) {
	d := newDesk(t)
	d.cfg.Input = Stream("in", strings.NewReader(ask("a")))
	job := d.open()
	defer func() { _ = job.Close() }()
	if p, err := job.Plan(); err != nil || p.Work != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

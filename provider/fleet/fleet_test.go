package fleet_test

import (
	"context"
	"errors"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/fleet"
)

// member answers with its own name.
type member struct {
	name   string
	closed bool
}

func (m *member) Do(context.Context, provider.Request) (provider.Reply, error) {
	return provider.Reply{Body: []byte(m.name)}, nil
}

func (m *member) CloseIdle() { m.closed = true }

// A call goes to the lane that it was let into, and nowhere else.
func TestEachCallGoesToItsLane(t *testing.T) {
	a, b := &member{name: "a"}, &member{name: "b"}
	f := must.Get(fleet.New(fleet.Lane{Name: "a", Client: a}, fleet.Lane{Name: "b", Client: b}))(t)
	for lane, want := range map[string]string{"a": "a", "b": "b", "a/gpt": "a", "b/a": "b", "b/vendor/model": "b"} {
		if reply, err := f.Do(t.Context(), provider.Request{Lane: lane}); err != nil || string(reply.Body) != want {
			t.Errorf("%s: %s, %v", lane, reply.Body, err)
		}
	}
	for _, lane := range []string{"", "c", "c/a", "/a"} {
		if reply, err := f.Do(t.Context(), provider.Request{Lane: lane}); !errors.Is(err, provider.Misconfigured) || reply.Body != nil {
			t.Errorf("%q: %s, %v", lane, reply.Body, err)
		}
	}
	if f.CloseIdle(); !a.closed || !b.closed {
		t.Errorf("%t, %t", a.closed, b.closed)
	}
}

// Where there is one lane only, it is everybody's.
func TestSingleLane(t *testing.T) {
	f := must.Get(fleet.New(fleet.Lane{Name: "a", Client: &member{name: "a"}}))(t)
	for _, lane := range []string{"", "a", "sim/all-models"} {
		if reply, err := f.Do(t.Context(), provider.Request{Lane: lane}); err != nil || string(reply.Body) != "a" {
			t.Errorf("%q: %s, %v", lane, reply.Body, err)
		}
	}
}

// A fleet that cannot be meant is refused.
func TestNewRefuses(t *testing.T) {
	one := fleet.Lane{Name: "a", Client: &member{}}
	for name, lanes := range map[string][]fleet.Lane{
		"none": {}, "twice": {one, one}, "nameless": {{Client: one.Client}}, "clientless": {{Name: "b"}}, "slash": {{Name: "a/b", Client: one.Client}},
	} {
		if _, err := fleet.New(lanes...); !errors.Is(err, provider.Misconfigured) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/headrace/headrace/provider"
)

// Client calls one provider, as the clients of wire, openai, anthropic, gemini and converse
// do. It may be used by many goroutines at once.
type Client interface {
	Do(ctx context.Context, r provider.Request) (provider.Reply, error)
	CloseIdle()
}

// Lane is a client with the name of its lane. It also serves the lanes NAME/MODEL of its models.
type Lane struct {
	Name   string
	Client Client
}

// Fleet holds the clients. It may be used by many goroutines at once.
type Fleet struct {
	clients map[string]Client
	only    Client // nil if there are several
}

// New makes a fleet. Each lane needs a name of its own, without "/". Without one, or without any
// lane, New returns an error of kind Misconfigured.
func New(lanes ...Lane) (*Fleet, error) {
	f := &Fleet{clients: make(map[string]Client, len(lanes))}
	for _, l := range lanes {
		if _, twice := f.clients[l.Name]; twice || l.Name == "" || strings.Contains(l.Name, "/") || l.Client == nil {
			return nil, fault(provider.Misconfigured, fmt.Errorf("lane %q: each needs a client, and a name of its own without a /", l.Name))
		}
		f.clients[l.Name] = l.Client
	}
	switch len(lanes) {
	case 0:
		return nil, fault(provider.Misconfigured, errors.New("there is no lane"))
	case 1:
		f.only = lanes[0].Client
	}
	return f, nil
}

func fault(kind provider.Kind, err error) error {
	return &provider.Error{Kind: kind, Provider: "fleet", Err: err}
}

// Do calls the provider of r.Lane, with the promises of its client. A fleet of a single lane takes
// every call, whatever r.Lane says. With several lanes, a call that names an unknown one is an
// error of kind Misconfigured, and nothing is sent.
func (f *Fleet) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	client := f.Of(r.Lane)
	if client == nil {
		return provider.Reply{}, fault(provider.Misconfigured, fmt.Errorf("there is no lane %.64q", r.Lane))
	}
	return client.Do(ctx, r)
}

// Of returns the client of a lane; nil if there is none. A single lane's client is that of all
// lanes.
func (f *Fleet) Of(lane string) Client {
	if f.only != nil {
		return f.only
	}
	if c := f.clients[lane]; c != nil {
		return c
	}
	name, _, _ := strings.Cut(lane, "/")
	return f.clients[name]
}

// CloseIdle closes the connections that no call uses.
func (f *Fleet) CloseIdle() {
	for _, c := range f.clients {
		c.CloseIdle()
	}
}

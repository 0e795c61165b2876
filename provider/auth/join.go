package auth

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/headrace/headrace/provider"
)

// Join returns a Source that applies each of the sources, in order. So a request has a key of its
// provider and one of a gateway, each in its own header. A source that signs requests comes last:
// it signs what the others have put in. Nil sources are left out. The result is a [Fixed] if all
// sources are, and a [Dated] if one is.
func Join(sources ...Source) Source {
	var all joined
	for _, s := range sources {
		if _, none := s.(None); s != nil && !none {
			all = append(all, s)
		}
	}
	isFixed := func(s Source) bool { _, is := s.(Fixed); return is }
	isDated := func(s Source) bool { _, is := s.(Dated); return is }
	switch {
	case len(all) == 0:
		return None{}
	case len(all) == 1:
		return all[0]
	case !slices.ContainsFunc(all, func(s Source) bool { return !isFixed(s) }):
		return fixedJoined{all, all.Secrets()}
	case slices.ContainsFunc(all, isDated):
		return datedJoined{all}
	}
	return all
}

// joined is several sources.
type joined []Source

// Apply stops at the first error.
func (j joined) Apply(ctx context.Context, r *http.Request, body []byte) error {
	for _, s := range j {
		if err := s.Apply(ctx, r, body); err != nil {
			return err
		}
	}
	return nil
}

// Refused asks each source, as each may have something fresher.
func (j joined) Refused(r *http.Request) (again bool) {
	for _, s := range j {
		again = s.Refused(r) || again
	}
	return again
}

// Secrets returns those of all.
func (j joined) Secrets() (all []string) {
	for _, s := range j {
		all = append(all, s.Secrets()...)
	}
	return all
}

// String hides the keys from %v.
func (j joined) String() string { return "several sources" }

// GoString hides the keys from %#v.
func (j joined) GoString() string { return j.String() }

// fixedJoined is several sources whose headers are the same for every request.
type fixedJoined struct {
	joined
	secrets []string // of all: they stay the same, too
}

// Header has those of all.
func (f fixedJoined) Header() http.Header {
	all := http.Header{}
	for _, s := range f.joined {
		maps.Copy(all, s.(Fixed).Header()) // Join has looked
	}
	return all
}

// Secrets returns those of all.
func (f fixedJoined) Secrets() []string { return f.secrets }

// datedJoined is several sources, one of which proves with the time.
type datedJoined struct{ joined }

// RefusedFor asks each source. One without a clock is asked only about an Unauthorized call.
func (d datedJoined) RefusedFor(r *http.Request, why *provider.Error, answer http.Header) (again bool) {
	for _, s := range d.joined {
		if dated, is := s.(Dated); is {
			again = dated.RefusedFor(r, why, answer) || again
		} else if why.Kind == provider.Unauthorized {
			again = s.Refused(r) || again
		}
	}
	return again
}

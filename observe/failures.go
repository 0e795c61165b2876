package observe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// Bounds of the memory for failures.
const (
	// MaxFailures is the number of ways of failing that are counted apart. All further ways
	// are counted under [OtherFailures].
	MaxFailures = 32
	// MaxExamples is the number of items named for each way of failing: the first ones.
	MaxExamples = 3

	// maxRaw bounds the part of a message that is read, in bytes, before secrets are taken out: well
	// over what is shown.
	maxRaw = 4 << 10
	// longSecret is the number of bytes dropped at the end of a message over maxRaw. The cut
	// may have split a secret there, and Redact does not recognise half of one.
	longSecret = 512
)

// OtherFailures is the kind of the failures that are counted together, after all others.
const OtherFailures = "other"

// failures are the ways in which items failed.
type failures struct {
	mu    sync.Mutex
	ways  map[way]*Failure
	other int
}

// A way of failing is identified by what all its failures have in common.
type way struct{ kind, code, message string }

// note counts a failure. It calls example only if the example is kept.
func (f *failures) note(w way, example func() Example) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.ways[w]
	switch {
	case known == nil && len(f.ways) == MaxFailures:
		f.other++
		return
	case known == nil:
		if f.ways == nil {
			f.ways = map[way]*Failure{}
		}
		known = &Failure{Kind: w.kind, Code: w.code, Message: w.message}
		f.ways[w] = known
	}
	if known.Count++; len(known.Examples) < MaxExamples {
		known.Examples = append(known.Examples, example())
	}
}

// list returns a copy, most frequent first.
func (f *failures) list() []Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Failure, 0, len(f.ways)+1)
	for _, w := range f.ways {
		one := *w
		one.Examples = slices.Clone(w.Examples)
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	if f.other > 0 {
		list = append(list, Failure{Kind: OtherFailures, Count: f.other})
	}
	return list
}

// failed notes an item that failed.
func (r *Recorder) failed(e *batch.End) {
	kind, code := r.code(e.Err)
	text := r.message(e.Err)
	r.failures.note(way{oneLine(kind), oneLine(code), fingerprint(text)}, func() Example {
		id, line := r.describe(e)
		return Example{ID: oneLine(id), Line: line, Message: text}
	})
}

// code returns the kind and the code under which a failure is counted.
func (r *Recorder) code(err error) (kind, code string) {
	defer r.caught("Code")
	kind = provider.Unknown.String()
	if r.cfg.Code != nil {
		return r.cfg.Code(err)
	}
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return "panic", ""
	}
	if e := faultOf(err); e != nil {
		if code = e.Code; e.Status != 0 {
			code = strconv.Itoa(e.Status)
		}
		return e.Kind.String(), code
	}
	var k provider.Kind
	if errors.As(err, &k) {
		kind = k.String()
	}
	return kind, ""
}

// faultOf returns the [provider.Error] in an error's chain; nil if there is none.
func faultOf(err error) *provider.Error {
	var e *provider.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// message returns the text of a failure, in one line, without secrets.
func (r *Recorder) message(err error) (text string) {
	defer r.caught("Redact, or an error's Error,")
	var panicked *batch.PanicError
	switch e := faultOf(err); {
	case errors.As(err, &panicked):
		text = fmt.Sprintf("panic: %v", panicked.Value)
	case e != nil && e.Message != "":
		text = e.Message
	default:
		text = err.Error()
	}
	long := len(text) > maxRaw
	if long {
		text = text[:maxRaw]
	}
	if r.cfg.Redact != nil {
		unsafe := text
		text = "" // if it panics
		text = r.cfg.Redact(unsafe)
	}
	if long {
		text = text[:max(0, len(text)-longSecret)]
	}
	return oneLine(text)
}

// describe returns the id and the line of the item.
func (r *Recorder) describe(e *batch.End) (id string, line int) {
	defer r.caught("Describe")
	if r.cfg.Describe == nil {
		return "", int(e.Item) + 1
	}
	return r.cfg.Describe(e.In)
}

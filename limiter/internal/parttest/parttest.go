package parttest

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// Noon is the start of the tests: of a day that only leap years have.
var Noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// At returns the instant so many seconds after Noon.
func At(seconds float64) time.Time { return Noon.Add(time.Duration(seconds * 1e9)) }

// Seeded returns a source of chance that gives the same each time.
func Seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// Want fails a test whose figure is another one.
func Want[T comparable](t *testing.T, what string, got, expected T) {
	t.Helper()
	if got != expected {
		t.Errorf("%s: got %v, want %v", what, got, expected)
	}
}

// Near fails a test whose figure is farther off, or no number.
func Near(t *testing.T, what string, got, expected, within float64) {
	t.Helper()
	if !(got >= expected-within && got <= expected+within) {
		t.Errorf("%s: got %v, want %v ± %v", what, got, expected, within)
	}
}

// A Part is a value, with a function that teaches it one thing more.
type Part struct {
	value any // a pointer to it
	teach func(value any, now time.Time)
}

// Of returns a part that begins as v.
func Of[T any](v T, teach func(v *T, now time.Time)) Part {
	return Part{&v, func(value any, now time.Time) { teach(value.(*T), now) }}
}

// Contents formats all contents of a value, with pointers followed, so that any difference
// shows. It leaves out the fields of the outermost struct that are named in without.
func Contents(v any, without ...string) any { return deep(reflect.ValueOf(v), without) }

// deep returns the contents of a value as nested lists of basic values. It panics at a map, a
// function or an interface, so that nothing in a part escapes the comparison.
func deep(v reflect.Value, without []string) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return []any{"pointer", deep(v.Elem(), without)}
	case reflect.Struct:
		var all []any
		for i := range v.NumField() {
			if !slices.Contains(without, v.Type().Field(i).Name) {
				all = append(all, deep(v.Field(i), nil))
			}
		}
		return all
	case reflect.Array, reflect.Slice:
		var all []any
		for i := range v.Len() {
			all = append(all, deep(v.Index(i), nil))
		}
		return all
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Float64, reflect.Float32:
		return v.Float()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return v.Uint()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	}
	panic("a part holds a " + v.Type().String())
}

// Copies proves that a plain copy of a part is independent: whichever of the two is taught, and
// however much was learned before, the other stays as it was.
func Copies(t *testing.T, parts ...Part) {
	t.Helper()
	for _, p := range parts {
		name, now := reflect.TypeOf(p.value).Elem().Name(), Noon
		learn := func(value any, times int) {
			for range times {
				now = now.Add(701 * time.Millisecond)
				p.teach(value, now)
			}
		}
		for _, before := range []int{0, 1, 7, 9, 100, 128, 129, 1000} {
			original := reflect.New(reflect.TypeOf(p.value).Elem())
			original.Elem().Set(reflect.ValueOf(p.value).Elem())
			learn(original.Interface(), before)
			duplicate := reflect.New(original.Type().Elem())
			duplicate.Elem().Set(original.Elem())
			for _, pair := range [][2]reflect.Value{{original, duplicate}, {duplicate, original}} {
				was := deep(pair[1].Elem(), nil)
				learn(pair[0].Interface(), 150)
				if !reflect.DeepEqual(was, deep(pair[1].Elem(), nil)) {
					t.Errorf("%s, taught %d times before: a copy was taught, and the other one changed", name, before)
				}
			}
		}
	}
}

// A Hot method runs for each call that an owner admits, over a stream of times that moves on.
type Hot map[string]func(now time.Time)

// Allocate proves that no hot method allocates.
func (h Hot) Allocate(t *testing.T) {
	t.Helper()
	for name, call := range h {
		now := Noon
		if n := testing.AllocsPerRun(1000, func() {
			now = now.Add(time.Millisecond)
			call(now)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// Benchmark measures each hot method in a benchmark of its own.
func (h Hot) Benchmark(b *testing.B) {
	b.Helper()
	for name, call := range h {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			now := Noon
			for b.Loop() {
				now = now.Add(time.Microsecond)
				call(now)
			}
		})
	}
}

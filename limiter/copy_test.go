package limiter

import (
	"reflect"
	"testing"
	"time"
)

// A part is a value of an exported type, and what teaches it one thing more.
type part struct {
	value any // a pointer to it
	teach func(value any, now time.Time)
}

func partOf[T any](v T, teach func(v *T, now time.Time)) part {
	return part{&v, func(value any, now time.Time) { teach(value.(*T), now) }}
}

// parts are all that hold something that is learned.
func parts() []part {
	fine := ErrorWindowConfig{Buckets: maxSlots, MinSamples: 3}
	return []part{
		partOf(Bucket{}, func(b *Bucket, now time.Time) { b.SetLimit(now, 600, 100); b.take(now, 3) }),
		partOf(NewQuota(Limits{RPM: 600, TPM: 1e6}, noon), func(q *Quota, now time.Time) { q.Take(now, Cost{Requests: 1, Input: 50}) }),
		partOf(Pacer{}, func(p *Pacer, now time.Time) { p.Take(now, 5) }),
		partOf(NewRate(RateConfig{Initial: 10}), func(r *Rate, now time.Time) { r.Aim(now, 20); r.Success(now) }),
		partOf(NewRate(RateConfig{}), func(r *Rate, now time.Time) { r.Success(now) }),
		partOf(NewErrorWindow(fine), func(e *ErrorWindow, now time.Time) { e.record(now, now.Second()%2 == 0) }),
		partOf(ErrorWindow{}, func(e *ErrorWindow, now time.Time) { e.record(now, now.Second()%2 == 0) }),
		partOf(Ramp{}, func(r *Ramp, now time.Time) { r.Start(now) }),
		partOf(Cooldown{}, func(c *Cooldown, now time.Time) { c.Start(now, 0, false, seeded(1)) }),
		partOf(NewBreaker(BreakerConfig{}), func(b *Breaker, now time.Time) { b.Failure(now, 0); b.Success(now, true) }),
		partOf(MeanLatency{}, func(l *MeanLatency, now time.Time) { l.Observe(time.Duration(now.Nanosecond())) }),
		partOf(Latency{}, func(l *Latency, now time.Time) { l.Observe(time.Duration(now.Nanosecond())) }),
		partOf(Meter{}, func(m *Meter, now time.Time) { m.Add(now) }),
		partOf(LocalWindow{}, func(w *LocalWindow, _ time.Time) { w.Sent(); w.Answered(time.Second) }),
		partOf(MeanWindow{Target: time.Second}, func(w *MeanWindow, now time.Time) { w.Answered(now, time.Second, 3) }),
	}
}

// deep is all that a value holds, pointers followed, as text would not tell it apart.
func deep(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return []any{"pointer", deep(v.Elem())}
	case reflect.Struct:
		var all []any
		for i := range v.NumField() {
			all = append(all, deep(v.Field(i)))
		}
		return all
	case reflect.Array, reflect.Slice:
		var all []any
		for i := range v.Len() {
			all = append(all, deep(v.Index(i)))
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

// A plain copy of a part is independent: whichever of the two is taught, however much was
// learned before, the other stays as it was.
func TestCopiesOfPartsAreIndependent(t *testing.T) {
	for _, p := range parts() {
		name, now := reflect.TypeOf(p.value).Elem().Name(), noon
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
				was := deep(pair[1].Elem())
				learn(pair[0].Interface(), 150)
				if !reflect.DeepEqual(was, deep(pair[1].Elem())) {
					t.Errorf("%s, taught %d times before: a copy was taught, and the other one changed", name, before)
				}
			}
		}
	}
}

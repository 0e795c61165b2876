package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/store"
)

// How a trace is kept: 22 bytes, whose order is that of kind, sum and line.
//
//	kind 1 │ sum 12 │ line of the segment 4 │ text 4 │ flags 1
const (
	traceSum   = 1
	traceLine  = traceSum + prompts.TraceSize
	traceText  = traceLine + 4
	traceFlags = traceText + 4
	traceSize  = traceFlags + 1

	traceKinds = 4
)

// The flags of a trace.
const (
	flagRefused = 1 << iota // see prompts.Trace
	flagForeign             // it is good, and cannot be translated
)

type trace [traceSize]byte

func traceOf(t prompts.Trace, line int) (r trace) {
	r[0] = byte(t.Kind)
	copy(r[traceSum:], t.Sum[:])
	binary.BigEndian.PutUint32(r[traceLine:], uint32(line))
	binary.BigEndian.PutUint32(r[traceText:], t.Text)
	if t.Refused {
		r[traceFlags] |= flagRefused
	}
	if t.Untranslatable {
		r[traceFlags] |= flagForeign
	}
	return r
}

func (r *trace) kind() prompts.TraceKind { return prompts.TraceKind(r[0]) }
func (r *trace) same(o *trace) bool      { return bytes.Equal(r[:traceLine], o[:traceLine]) }
func (r *trace) line() int               { return int(binary.BigEndian.Uint32(r[traceLine:])) }
func (r *trace) text() uint32            { return binary.BigEndian.Uint32(r[traceText:]) }
func (r *trace) refused() bool           { return r[traceFlags]&flagRefused != 0 }
func (r *trace) foreign() bool           { return r[traceFlags]&flagForeign != 0 }

// number is that of the line whose id a numbered one gives, from 1; none if it is beyond all lines.
func (r *trace) number() int { return int(binary.BigEndian.Uint64(r[traceLine-8 : traceLine])) }

// tracesAtOnce is how many traces are sorted in memory: 23 MB. A segment of 1 GB has one run, or,
// where lines have a hundred bytes, ten.
const tracesAtOnce = 1 << 20

// growAt is the part of a run at which room is made for all of it: to grow step by step would take,
// for a moment, more than twice of it.
const growAt = 16

// runs writes traces in sorted runs.
type runs struct {
	ctx   context.Context
	store store.Store
	name  string // what the names of their objects begin with
	most  int    // of a run
	all   []Run
	room  []trace
	err   error // why no more is kept
}

func (w *runs) add(t prompts.Trace, line int) {
	if len(w.room) == cap(w.room) && len(w.room) >= w.most/growAt {
		w.room = append(make([]trace, 0, w.most), w.room...)
	}
	w.room = append(w.room, traceOf(t, line))
	if len(w.room) >= w.most && w.err == nil {
		w.err = w.flush()
	}
}

// flush writes what is in hand as one more run.
func (w *runs) flush() error {
	if w.err != nil || len(w.room) == 0 {
		return w.err
	}
	slices.SortFunc(w.room, func(a, b trace) int { return bytes.Compare(a[:], b[:]) })
	run := Run{Name: fmt.Sprintf("%s-%d", w.name, len(w.all))}
	for i := range w.room {
		run.Kinds[w.room[i].kind()]++
	}
	err := w.store.Create(w.ctx, run.Name, &traceReader{all: w.room}, int64(len(w.room))*traceSize)
	w.all = append(w.all, run)
	w.room = w.room[:0]
	return err
}

// remove takes away what nobody is going to read. What cannot be is left: it does no harm.
func (w *runs) remove() {
	for _, run := range w.all {
		_ = w.store.Delete(w.ctx, run.Name)
	}
}

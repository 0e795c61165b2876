package prompts

import (
	"encoding/binary"
	"hash/crc32"
)

// TraceSize is how many bytes of a hash a Trace bears. Among 10⁸ lines two that differ share 96
// bits with a chance of 10⁻¹³: nobody needs to look at them again.
const TraceSize = 12

// Trace is what a line may have in common with others of its input. Who reads an input in
// sections finds by traces what no section knows by itself: ids used twice, and the Nth of
// lines that are alike. The same line leaves the same trace on every machine.
type Trace struct {
	Line int // its number, those above its section counted
	Kind TraceKind
	Sum  [TraceSize]byte // two lines of one kind with one sum are alike
	// Text tells lines with one sum apart that are not the same to the byte: a CRC-32C of them.
	Text uint32
	// Refused says that Config.Takes does not take it, and Untranslatable that it does not as
	// it cannot be translated. Either is no request, and has its id all the same.
	Refused, Untranslatable bool
}

// TraceKind says in what lines are alike.
type TraceKind uint8

// The kinds of trace.
const (
	TraceBad      TraceKind = iota // no request: its text
	TraceNumbered                  // gives an id that is the LineID of some line: Number has which
	TraceNamed                     // gives any other id: that
	TraceBare                      // gives no id: what it asks
)

// Number is the line whose LineID is given as an id by one that is TraceNumbered.
func (t *Trace) Number() int { return int(binary.BigEndian.Uint64(t.Sum[TraceSize-8:])) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// trace tells what the line in hand has in common with others, if it is wanted. A line that
// was not understood is no request, and known by its text alone.
func (r *Reader) trace(req *Request, text []byte, understood bool, refused *LineError) {
	if r.cfg.Trace == nil {
		return
	}
	t := Trace{Line: r.number(), Text: crc32.Checksum(text, castagnoli)}
	t.Untranslatable = refused != nil && refused.Request != nil
	t.Refused = refused != nil && !t.Untranslatable
	switch {
	case !understood:
		sum := r.keys.Bad(text)
		copy(t.Sum[:], sum[:])
	case req.HasID:
		t.Kind = TraceNamed
		if n, ok := lineOfID(string(r.id)); ok {
			t.Kind = TraceNumbered
			binary.BigEndian.PutUint64(t.Sum[TraceSize-8:], uint64(n))
			break
		}
		sum := r.keys.ID(r.id)
		copy(t.Sum[:], sum[:])
	default:
		t.Kind = TraceBare
		sum := r.keys.Nth(req.keyed(), req.Body, 0)
		copy(t.Sum[:], sum[:])
	}
	r.cfg.Trace(t)
}

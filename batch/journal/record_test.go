package journal

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// Records passes the lines that ReadItems counts, in the same order: no failure that has a result by now, none that a later line
// has replaced, and no bad line that was corrected.
func TestRecordsAreTheItems(t *testing.T) {
	output, failed := "", ""
	for n := range 3 {
		l := savedLine(n + 1)
		output += string(AppendLine(nil, &l))
	}
	corrected, bad := savedLine(2), savedLine(8)
	for _, l := range []*Line{&corrected, &bad} {
		l.Error, l.Response = &Failure{Code: CodeInvalidLine, Message: "in.jsonl: line"}, nil
		l.Headrace.Key = keyOf("another " + l.CustomID)
		failed += string(AppendLine(nil, relined(*l)))
	}
	again := savedLine(3)
	again.Error = &Failure{Code: "timeout"}
	failed += string(AppendLine(nil, &again)) + journalLine("x", "timeout") + journalLine("x", "invalid")

	path, errorsPath := writeFile(t, output+opening[:9]), writeFile(t, failed)
	var want, got []string
	must.Get(ReadItems(path, errorsPath, func(i *Item) { want = append(want, string(i.Text)) }))(t)
	must.Do(t, Records(path, errorsPath, func(r *Record) error {
		from := output
		if r.Failed {
			from = failed
		}
		if !strings.HasPrefix(from[r.Offset:], string(r.Text)) || string(memberValue(r.Members, "custom_id")) == "" || string(memberValue(r.Headrace, "line")) == "" {
			t.Errorf("%d, %v: %q", r.Offset, r.Failed, r.Text)
		}
		got = append(got, string(r.Text))
		var p Parser
		if one := must.Get(p.Record(r.Text))(t); one.Failed != r.Failed || len(one.Members) != len(r.Members) || len(one.Headrace) != len(r.Headrace) {
			t.Errorf("%+v", one)
		}
		return nil
	}))
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	all, stands := strings.SplitAfter(output+failed, "\n"), []int{0, 1, 2, 4, 7} // the results, the bad line that still is, the later of two
	for k, line := range stands {
		if len(got) != len(stands) || got[k] != all[line] {
			t.Fatalf("%d items, item %d is %q, want %q", len(got), k, got[k], all[line])
		}
	}
}

// While the output is read, a run may add failures, and may write the errors file anew. What stands there afterwards counts.
func TestItemsWhileARunGoesOn(t *testing.T) {
	bad := func(id int) string {
		l := savedLine(id)
		l.Error, l.Response = &Failure{Code: CodeInvalidLine, Message: "in.jsonl: line"}, nil
		l.Headrace.Key = keyOf("another " + l.CustomID)
		return string(AppendLine(nil, relined(l)))
	}
	l := savedLine(1)
	output := writeFile(t, string(AppendLine(nil, &l)))
	errorsPath := writeFile(t, journalLine("x", "timeout")+journalLine("y", "timeout")+bad(5))
	p, err := ReadItems(output, errorsPath, func(i *Item) {
		if !i.Failed {
			must.Do(t, os.WriteFile(errorsPath, []byte(journalLine("y", "invalid")+bad(6)), 0o600))
		}
	})
	if err != nil || p.Done != 1 || p.Failed != 2 || p.Failures["invalid"] != 1 || p.Failures[CodeInvalidLine] != 1 {
		t.Errorf("%v: %+v", err, p)
	}
}

// A flipped bit shows, a file of others is refused, and an error of take ends the work.
func TestRecordsRefuse(t *testing.T) {
	l := nativeLine(7)
	text := AppendLine(nil, &l)
	take := func(*Record) error { return nil }
	for i := range text {
		damaged := slices.Clone(text)
		damaged[i] ^= 1
		var p Parser
		if _, err := p.Record(damaged); !errors.Is(err, ErrChanged) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	spoilt := string(text) + strings.Replace(string(text), "x", "y", 1) + string(text)
	for text, want := range map[string]error{spoilt: ErrDamaged, "{}\n": ErrForeign, journalLine("x", "timeout"): ErrOtherKind} {
		if err := Records(writeFile(t, text), "none", take); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	cause := errors.New("enough")
	stop := func(*Record) error { return cause }
	if err := Records(writeFile(t, string(text)), "none", stop); !errors.Is(err, cause) {
		t.Error(err)
	}
	if err := Records("none", writeFile(t, journalLine("x", "timeout")), stop); !errors.Is(err, cause) {
		t.Error(err)
	}
}

func BenchmarkRecords(b *testing.B) {
	l := nativeLine(7)
	text := AppendLine(nil, &l)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var p Parser
	for b.Loop() {
		must.Get(p.Record(text))(b)
	}
}

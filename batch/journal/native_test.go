package journal

import (
	"strings"
	"testing"
)

// nativeLine returns a line of item n with every field set; its text looks like lines and
// sums.
func nativeLine(n int) Line {
	l, plain := native(), savedLine(n)
	text := string(AppendLine(nil, &plain)) + `{"id":"hr-000000000000000000000000","custom_id":"x"},"sum":"00000000"}}`
	l.ID, l.CustomID, l.Headrace.Key, l.Headrace.Line, l.Headrace.Text = plain.ID, plain.CustomID, plain.Headrace.Key, n, &text
	return l
}

// Lines that tell of other dialects are read as any other: gone on with, summed up, and, of
// a damaged file, kept as they were. Both sorts stand in one file.
func TestLinesOfOtherDialectsAreReadBack(t *testing.T) {
	plain, native, last := savedLine(1), nativeLine(2), nativeLine(3)
	last.Headrace.Text = nil
	file := string(AppendLine(nil, &plain)) + string(AppendLine(nil, &native)) + string(AppendLine(nil, &last))
	j, err := ReadJournal(writeFile(t, file))
	if err != nil || j.Lines != 3 || j.Keys.Len() != 3 || j.Repeated != 0 || !j.Keys.Has(native.Headrace.Key) {
		t.Fatalf("%+v, %v", j, err)
	}
	p, err := ReadProgress(writeFile(t, file), "none")
	if err != nil || p.Done != 3 || p.Usage.InputTokens != 18 || p.Usage.CacheWriteTokens != 8 || p.Usage.ReasoningTokens != 10 || p.Priced != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	path := writeFile(t, strings.Replace(file, `"custom_id":"item-1"`, `"custom_id":"item-7"`, 1))
	r, err := Repair(path)
	if want := file[strings.Index(file, "\n")+1:]; err != nil || r.Kept != 2 || len(r.Dropped) != 1 || textOf(t, path) != want {
		t.Errorf("%+v, %v:\n%s", r, err, textOf(t, path))
	}
	torn, err := ReadJournal(writeFile(t, file[:len(file)-100]))
	if err != nil || torn.Lines != 2 || torn.Torn == 0 {
		t.Errorf("%+v, %v", torn, err)
	}
}

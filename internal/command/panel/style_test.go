package panel

import "testing"

// The locale decides what a terminal shows. The first of its variables that is not empty
// counts.
func TestStyleOf(t *testing.T) {
	for name, c := range map[string]struct {
		env     map[string]string
		windows bool
		want    Style
	}{
		"usual":             {map[string]string{"LANG": "de_AT.UTF-8"}, false, Style{}},
		"C":                 {map[string]string{"LANG": "C"}, false, Style{ASCII: true}},
		"nothing said":      {nil, false, Style{ASCII: true}},
		"nothing, Windows":  {nil, true, Style{}},
		"not UTF-8":         {map[string]string{"LANG": "de_DE.ISO-8859-1"}, false, Style{ASCII: true}},
		"LC_ALL first":      {map[string]string{"LANG": "de_AT.UTF-8", "LC_CTYPE": "de_AT.UTF-8", "LC_ALL": "C"}, false, Style{ASCII: true}},
		"an empty one":      {map[string]string{"LC_ALL": "", "LC_CTYPE": "C.utf8", "LANG": "C"}, false, Style{}},
		"the Linux console": {map[string]string{"TERM": "linux", "LANG": "de_AT.UTF-8"}, false, Style{ASCII: true}},
		"Japanese":          {map[string]string{"LANG": "ja_JP.UTF-8"}, false, Style{Wide: true}},
		"Korean":            {map[string]string{"LC_CTYPE": "ko_KR.utf8"}, false, Style{Wide: true}},
		"Kongo":             {map[string]string{"LANG": "kg_CD.UTF-8"}, false, Style{}},
	} {
		env := func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
		if got := StyleOf(env, c.windows); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A Layout is asked for as many speeds as it shows.
func TestSpeedsFor(t *testing.T) {
	for width, want := range map[int]int{1: 1, 40: 12, 59: 31, 60: 16, 80: 36, 200: 108, 400: 108} {
		if got := SpeedsFor(width); got != want {
			t.Errorf("%d columns: %d", width, got)
		}
	}
}

package stream

import (
	"strings"
	"testing"
)

// The chunk of the usage is taken out, in whatever pieces it comes, and every other byte passes.
func TestHider(t *testing.T) {
	one := "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n"
	last := "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9}}\n\n"
	filter := "data: {\"choices\":[],\"prompt_filter_results\":[],\"usage\":null}\n\n"
	usage := "data: {\"choices\":[ ],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\n"
	done := "data: [DONE]\n\n"
	long := "data: {\"choices\":[],\"usage\":{\"x\":\"" + strings.Repeat("x", maxKept) + "\"}}\n\n"
	for name, test := range map[string]struct{ text, want string }{
		"usage at the end":       {one + usage + done, one + done},
		"with carriage returns":  {strings.ReplaceAll(one+usage+done, "\n", "\r\n"), strings.ReplaceAll(one+done, "\n", "\r\n")},
		"usage of a last choice": {one + last + done, one + last + done},
		"a filter's chunk":       {filter + one + done, filter + one + done},
		"comments":               {": a\n\n" + usage + ": b\n\n" + done, ": a\n\n: b\n\n" + done},
		"a line without its end": {one + "data: {\"choi", one + "data: {\"choi"},
		"a line too long":        {long + one + usage, long + one},
		"nothing":                {"", ""},
	} {
		for _, size := range []int{1, 3, 1 << 20} {
			h, got := new(Hider), ""
			for rest := test.text; rest != ""; {
				n := min(size, len(rest))
				got += string(h.Pass([]byte(rest[:n])))
				rest = rest[n:]
			}
			if got += string(h.Rest()); got != test.want {
				t.Errorf("%s in pieces of %d: %.300q", name, size, got)
			}
		}
	}
}

package catalog_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/providertest"
)

var update = flag.Bool("update", false, "write the tables of docs/providers.md anew")

const page = "../../docs/providers.md"

// The page that people read says what the rows do.
func TestPage(t *testing.T) {
	was := must.Get(os.ReadFile(page))(t)
	is := string(was)
	for name, table := range map[string]string{"where": where(), "limits": limits(), "notes": notes(), "recorded": recorded()} {
		from, to := "<!-- "+name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(is, from)
		_, after, ends := strings.Cut(rest, to)
		if !found || !ends {
			t.Fatalf("%s has no place for %s", page, name)
		}
		is = before + from + table + to + after
	}
	switch {
	case is == string(was):
	case *update:
		must.Do(t, os.WriteFile(page, []byte(is), 0o644))
	default:
		t.Errorf("%s is not what the rows say: go test ./provider/catalog -run TestPage -update", page)
	}
}

func where() string {
	var b strings.Builder
	b.WriteString("| name | who | key, in a variable | sent as | address | dialect |\n|---|---|---|---|---|---|\n")
	for _, v := range catalog.Rows() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", v.Name, v.Title, cmp.Or(code(v.Keys...), "–"), v.Auth, address(v), v.Dialect.Name())
	}
	return b.String()
}

func address(v catalog.Vendor) string {
	if v.Base == "" {
		return "`--base-url`"
	}
	address := code(v.Base + strings.TrimPrefix(v.Path, "{path}"))
	if v.SecondHand {
		address += " (second-hand)"
	}
	return address
}

func limits() string {
	var b strings.Builder
	b.WriteString("| name | headers | charge | in flight | of | attempt | streams | words |\n|---|---|---|--:|---|--:|--:|--:|\n")
	for _, v := range catalog.Rows() {
		own := len(v.Wording.Kinds) + len(v.Wording.Phrases) + len(v.Wording.Statuses)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n",
			v.Name, headers(v), charge(v), number(v.InFlight), whose(v), longest(v.Timeout), number(v.StreamOver), number(own))
	}
	return b.String()
}

// headers says what periods the limits in headers are for.
func headers(v catalog.Vendor) string {
	var says []string
	for _, p := range v.Periods {
		switch {
		case p == limiter.Period{}:
		case p.On == limiter.None:
			says = append(says, length(p.Per))
		default:
			says = append(says, fmt.Sprintf("%s: %s", p.On, length(p.Per)))
		}
	}
	if len(says) == 0 {
		if v.Local || strings.Contains(v.Note, "No headers") {
			return "none"
		}
		return "found out"
	}
	return strings.Join(says, ", ")
}

func length(d time.Duration) string {
	return map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}[d]
}

func charge(v catalog.Vendor) string {
	if v.Local {
		return "–"
	}
	says := map[limiter.ChargeRule]string{
		limiter.ChargeGreater: "greater", limiter.ChargeBoth: "both", limiter.ChargeAsExpected: "as written", limiter.ChargePromptOnly: "prompt",
	}[v.Charge.Rule]
	if v.Charge.Assumed > 0 {
		says += fmt.Sprintf(", %g if unbounded", v.Charge.Assumed)
	}
	if v.Charge.CachedFree {
		says += ", cached free"
	}
	if v.Settles {
		says += ", settles"
	}
	return says
}

func whose(v catalog.Vendor) string {
	switch {
	case v.Local:
		return "server"
	case v.ByAccount:
		return "account"
	}
	return "model"
}

func longest(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%g min", d.Minutes())
}

func number(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

func notes() string {
	var b strings.Builder
	for _, v := range catalog.Rows() {
		var says []string
		if v.Note != "" {
			says = append(says, v.Note)
		}
		if v.TellsCost {
			says = append(says, "Answers tell what they cost.")
		}
		if v.Organisation != "" {
			says = append(says, "Whose limits a call drew on is in the header "+code(strings.ToLower(v.Organisation))+".")
		}
		if len(says) > 0 {
			fmt.Fprintf(&b, "- **%s**: %s\n", v.Name, strings.Join(says, " "))
		}
	}
	return b.String()
}

func recorded() string {
	var b strings.Builder
	b.WriteString("| name | facts from | read on | recorded answers | documented | second-hand | stated only |\n|---|---|---|--:|--:|--:|--:|\n")
	for _, v := range catalog.Rows() {
		cases, how := recordedOf(v.Name), map[string]int{}
		for _, c := range cases {
			how[c.Source.How]++
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", v.Name, cmp.Or(v.Source, "–"), cmp.Or(v.Day, "–"),
			number(len(cases)), number(how[providertest.Documented]), number(how[providertest.SecondHand]), number(how[providertest.Stated]))
	}
	return b.String()
}

func code(words ...string) string {
	words = slices.Clone(words)
	for i, w := range words {
		words[i] = "`" + w + "`"
	}
	return strings.Join(words, ", ")
}

//go:build linux

package tests

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// simple is a provider that is never in the way.
var simple = sim.Fast()

// A judge knows whose a call is, what was in somebody's hands when he was killed, and that he
// has not heard the answer.
func TestJudgeKnowsWhatWasInHandsAtAKill(t *testing.T) {
	// A busy machine takes tenths of a second to kill; and all calls in hands must not end in the instant of the blow.
	j := newJudge(t, sim.Config{Latency: sim.Latency{Median: 500 * time.Millisecond, Sigma: 0.4}})
	a, b := fake(t, "a", "caller", j.base("a"), "4"), fake(t, "b", "caller", j.base("b"), "2")
	a.start()
	b.start()
	<-j.after(20)
	at := time.Now()
	hands := j.handsOf("a")
	a.kill()
	<-j.after(j.asked() + 6)
	b.kill()
	lost, after := 0, 0
	for _, c := range settled(t, j) {
		if c.who == "a" && c.at.After(at.Add(stops)) {
			after++
		}
		if c.who == "a" && c.status == 0 {
			lost++
		}
		if c.who != "a" && c.who != "b" || !strings.HasPrefix(c.prompt, "question ") {
			t.Fatalf("%+v", c)
		}
	}
	if after > 0 || lost == 0 || lost > 4 || hands > 4 {
		t.Errorf("%d calls after the kill; %d had no hearer, %d were in hands", after, lost, hands)
	}
}

// settled is the book when no call is in hands any more: a kill is heard a little later.
func settled(t *testing.T, j *judge) []call {
	t.Helper()
	for range 1000 {
		j.mu.Lock()
		open := len(j.open)
		j.mu.Unlock()
		if open == 0 {
			return j.book()
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("calls of the dead are still in hands")
	return nil
}

// A frozen process makes no call, and goes on when it is thawed. A killed one says so.
func TestProcessesFreezeAndDie(t *testing.T) {
	j := newJudge(t, sim.Config{Latency: sim.Latency{Median: time.Millisecond}})
	p := fake(t, "p", "caller", j.base("p"), "2")
	p.start()
	<-j.after(10)
	p.freeze()
	frozen := settled(t, j)
	time.Sleep(100 * time.Millisecond)
	if n := j.asked(); n != len(frozen) {
		t.Errorf("%d calls of a frozen process", n-len(frozen))
	}
	p.thaw()
	<-j.after(len(frozen) + 10)
	p.freeze()
	p.kill()
	if p.running() || p.code != -1 {
		t.Errorf("running %v, code %d", p.running(), p.code)
	}
	p.start()
	<-j.after(j.asked() + 10)
}

// A storm is its seed's: the same one twice, another with another.
func TestScheduleIsItsSeeds(t *testing.T) {
	habits := []habit{{aWorker, killing, 5 * time.Second, time.Second}, {aHub, freezing, 9 * time.Second, 3 * time.Second}}
	storm := func(seed uint64) []step {
		return schedule(rand.New(rand.NewPCG(seed, 0)), time.Minute, habits...)
	}
	if !slices.Equal(storm(1), storm(1)) || slices.Equal(storm(1), storm(2)) {
		t.Error("it is not the seed's alone")
	}
	for i, s := range storm(3) {
		if s.begin >= 0 && (s.begin >= i || storm(3)[s.begin].begin != -1 || s.harm != staying) {
			t.Errorf("step %d ends step %d: %+v", i, s.begin, s)
		}
	}
	if n := len(storm(4)); n < 20 || n > 60 {
		t.Errorf("%d steps in a minute", n)
	}
}

// What the comparer must notice, and what it must not.
func TestComparerNotices(t *testing.T) {
	line := func(i int, latency string) string {
		return fmt.Sprintf(`{"id":"hr-%d","custom_id":"%d","response":{"status_code":200,"request_id":"%s","body":{"created":%s,"n":12345678901234567890}},"error":null,"headrace":{"line":%d,"key":"k%d","attempts":%s,"lane":"l%s","queued_ms":%s,"waited_ms":1,"latency_ms":2,"sum":"%s"}}`+"\n",
			i, i, latency, latency, i, i, latency, latency, latency, latency)
	}
	whole := line(1, "1") + line(2, "1") + line(3, "1")
	for _, c := range []struct {
		name, text string
		same       bool
	}{
		{"the same", whole, true},
		{"other times", line(1, "7") + line(2, "8") + line(3, "9"), true},
		{"a line is lost", line(1, "1") + line(3, "1"), false},
		{"a line is there twice", whole + line(2, "1"), false},
		{"one twice, another lost", line(1, "1") + line(1, "1") + line(3, "1"), false},
		{"another order", line(2, "1") + line(1, "1") + line(3, "1"), false},
		{"another number", strings.Replace(whole, "12345678901234567890", "12345678901234567891", 1), false},
		{"another key", strings.Replace(whole, "k2", "k9", 1), false},
		{"another status", strings.Replace(whole, "200", "201", 1), false},
		{"a field more", strings.Replace(whole, `"key"`, `"more":1,"key"`, 1), false},
		{"no checksum", strings.Replace(whole, `,"sum":"1"`, "", 1), false},
		{"torn", strings.TrimSuffix(whole, "\n"), false},
	} {
		if got := compared(t, c.text, whole); (got == "") != c.same {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// compared returns the comparer's verdict on two files.
func compared(t *testing.T, got, want string) string {
	t.Helper()
	var lines [2][]string
	for i, text := range []string{got, want} {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if lines[i], err = normalFile(path); err != nil {
			return err.Error()
		}
	}
	return strings.Join(differences(lines[0], lines[1]), "\n")
}

// What excuses a repeat: that the one who made the first call was struck while it was in his
// hands, or just after.
func TestAuditExcuses(t *testing.T) {
	zero := time.Now()
	at := func(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }
	asked := map[string]int{"q": 1, "r": 1, "same": 2}
	blows := []blow{
		{kind: "kill", who: "a", at: at(10), until: at(10), may: 4, hands: 3},
		{kind: "freeze", who: "b", at: at(20), until: at(30), may: 2},
		{kind: "cut", who: "d", at: at(20), until: at(30), may: 2},
	}
	once := call{who: "c", prompt: "q", at: at(40), ended: at(41), status: 200}
	with := func(c call) []call { c.prompt = "q"; return []call{c, once} }
	thawed := func(bought, again float64) []call { // by the worker that froze
		return []call{{who: "c", prompt: "q", at: at(bought), ended: at(bought), status: 200}, {who: "b", prompt: "q", at: at(again), ended: at(again), status: 200}}
	}
	for _, c := range []struct {
		name     string
		book     []call
		repeated int
		excused  bool
	}{
		{"once", []call{once}, 0, true},
		{"refused first", with(call{who: "a", at: at(1), ended: at(1), status: 429}), 0, true},
		{"broken first", with(call{who: "a", at: at(1), ended: at(1), status: 500}), 0, true},
		{"in hands at the kill", with(call{who: "a", at: at(9), ended: at(10.1)}), 1, true},
		{"never ended", with(call{who: "a", at: at(9)}), 1, true},
		{"answered just before the kill", with(call{who: "a", at: at(9), ended: at(9.5), status: 200}), 1, true},
		{"answered long before the kill", with(call{who: "a", at: at(7), ended: at(8), status: 200}), 1, false},
		{"of another", with(call{who: "c", at: at(9), ended: at(10.1), status: 200}), 1, false},
		{"after the kill", with(call{who: "a", at: at(11), ended: at(12), status: 200}), 1, false},
		{"answered in the freeze", with(call{who: "b", at: at(19), ended: at(25), status: 200}), 1, true},
		{"just after the cut", with(call{who: "d", at: at(31), ended: at(32), status: 200}), 1, true},
		{"after the cut", with(call{who: "d", at: at(32.1), ended: at(33), status: 200}), 1, false},
		{"after the freeze", with(call{who: "b", at: at(31), ended: at(32), status: 200}), 1, false},
		{"bought while another was frozen at the wire", thawed(20.1, 30.05), 1, true},
		{"bought after the thaw", thawed(30.02, 30.05), 1, false},
		{"bought before the other froze", thawed(19.9, 30.05), 1, false},
		{"bought twice long after the thaw", thawed(20.1, 30.2), 1, false},
		{"two stood at the wire", append(thawed(20.1, 30.05), call{who: "c", prompt: "r", at: at(21), status: 200}, call{who: "b", prompt: "r", at: at(30.06), status: 200}), 2, false},
		{"asked by two items", []call{{prompt: "same", status: 200}, {prompt: "same", status: 200}}, 0, true},
		{"asked by two items, three times", []call{{prompt: "same", status: 200}, {prompt: "same", status: 200}, {prompt: "same", status: 200}}, 1, true},
	} {
		v := (&audit{asked: asked, blows: blows, late: 100 * time.Millisecond}).judge(c.book)
		if v.repeated != c.repeated || (len(v.inexcusable) == 0) != c.excused || v.may != 8 || v.hands != 3 {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// Who lost the keeper may call for two seconds more; and whenever he likes when it is back.
func TestAuditHearsSilence(t *testing.T) {
	zero := time.Now()
	at := func(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }
	a := &audit{absences: []absence{{who: "a", from: at(10), until: at(20)}}, late: 100 * time.Millisecond}
	for seconds, fine := range map[float64]bool{9: true, 11.9: true, 12.09: true, 12.2: false, 19.9: false, 20.1: true} {
		for who, its := range map[string]bool{"a": fine, "b": true} {
			v := a.judge([]call{{who: who, at: at(seconds), status: 200}})
			if (len(v.afterwards) == 0) != its {
				t.Errorf("%s calls at %v: %v", who, seconds, v.afterwards)
			}
		}
	}
}

// Every part of a link can be spoiled, and healed.
func TestLinks(t *testing.T) {
	j := newJudge(t, simple)
	for i, c := range []struct {
		name  string
		spoil func(*link)
	}{
		{"swallowed on the way there", func(l *link) { l.swallow(up) }},
		{"swallowed on the way back", func(l *link) { l.swallow(down) }},
		{"held on the way there", func(l *link) { l.hold(up) }},
		{"held on the way back", func(l *link) { l.hold(down) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLink(t, strings.TrimPrefix(j.url, "http://"))
			base := "http://" + l.address() + "/by/" + fmt.Sprint("p", i) + "/v1"
			p := fake(t, "p", "caller", base, "1")
			p.start()
			<-j.after(j.asked() + 5)
			c.spoil(l)
			time.Sleep(100 * time.Millisecond) // what flew when it was spoiled
			before := j.asked()
			time.Sleep(200 * time.Millisecond)
			if n := j.asked() - before; n > 1 {
				t.Errorf("%d calls over a link that is cut", n)
			}
			l.heal()
			<-j.after(j.asked() + 5)
		})
	}
}

// Damage is done, and to the hub's folder alone.
func TestDamage(t *testing.T) {
	for _, h := range []harm{wiping, tearing, flipping, killing} {
		dir := t.TempDir()
		text := bytes.Repeat([]byte("x"), 1000)
		inner := filepath.Join(dir, "hub", "a")
		if err := os.MkdirAll(inner, 0o755); err != nil {
			t.Fatal(err)
		}
		for n := range 8 {
			_ = os.WriteFile(filepath.Join(inner, fmt.Sprint(n)), text, 0o600)
		}
		damage(&fleet{t: t}, filepath.Join(dir, "hub"), step{harm: h, how: 7})
		changed := 0
		for n := range 8 {
			if got, err := os.ReadFile(filepath.Join(inner, fmt.Sprint(n))); err != nil || !bytes.Equal(got, text) {
				changed++
			}
		}
		if want := h != killing; (changed > 0) != want {
			t.Errorf("%s changed %d files", h, changed)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}

// A cluster that keeps its promises passes a storm of everything, and one that breaks one does
// not: so a storm that is passed says something.
func TestHarnessFindsBrokenPromises(t *testing.T) {
	onlyLong(t)
	for _, c := range []struct {
		fault string
		found func(v verdict, files []string) bool
	}{
		{"", func(v verdict, files []string) bool {
			return len(v.inexcusable)+len(v.afterwards)+len(files) > 0 || v.repeated > v.may
		}},
		{buysTwice, func(v verdict, _ []string) bool { return len(v.inexcusable) > 0 }},
		{goesOn, func(v verdict, _ []string) bool { return len(v.afterwards) > 0 }},
		{losesOne, func(_ verdict, files []string) bool { return len(files) > 0 }},
		{turnsRound, func(_ verdict, files []string) bool { return len(files) > 0 }},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			v, files := throughStorm(t, c.fault)
			if found := c.found(v, files); found != (c.fault != "") {
				t.Errorf("found %v: %+v\n%v", found, v, files)
			}
		})
	}
}

// throughStorm lets a fake cluster work through blows of every kind, and tells what was found.
func throughStorm(t *testing.T, fault string) (verdict, []string) {
	t.Helper()
	f := unstarted(t, plan{
		workers: 4, inFlight: fakeLanes, links: true,
		provider: sim.Config{Latency: sim.Latency{Median: 300 * time.Millisecond}},
	})
	f.command, f.env = os.Args[0], []string{fakeEnv + "=cluster", faultEnv + "=" + fault}
	f.launch()
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "fake", 300)
	customer, output := f.customer(q, "out")
	f.begun(40, customer)
	chance := rand.New(rand.NewPCG(1, 0))
	f.weather(schedule(chance, time.Minute,
		habit{aWorker, killing, 2 * time.Second, time.Second},
		habit{aWorker, freezing, 5 * time.Second, 3 * time.Second},
		habit{aWorker, cutting, 3 * time.Second, 4 * time.Second},
		habit{aHub, killing, 6 * time.Second, 4 * time.Second},
	), customer.over)
	if code := f.finishes(customer); code != 0 {
		t.Fatalf("exit %d", code)
	}
	one, _ := f.reference(q, "out")
	got, err := normalFile(output)
	if err != nil {
		t.Fatal(err)
	}
	want, err := normalFile(one)
	if err != nil {
		t.Fatal(err)
	}
	f.audit.late = f.late.allowance()
	v := f.audit.judge(settled(t, f.judge))
	t.Logf("%d calls, %d repeated, of %d in flight at %d blows; %v", v.calls, v.repeated, v.hands, len(f.audit.blows), f.strikes)
	return v, differences(got, want)
}

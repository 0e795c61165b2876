//go:build unix

package tests

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A run stops at --max-failures, by number or by share, saves what it has, names the option
// and the first items, and goes on without the bound. It does not stop below the bound.
func TestMaxFailures(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	var plays []*play
	for _, s := range []struct {
		name, bound string
		bad         int
		most        int // items that may fail; 0: the bound is not reached
		says        string
	}{
		{name: "number", bound: "3", bad: 9, most: 3 + 4, says: `stopped: \d of \d+ items failed in this run \(--max-failures 3\): row-\d{4} \(.*Invalid image\), row`},
		{name: "first", bound: "1", bad: 9, most: 1 + 4, says: `stopped: \d of \d+ items failed in this run \(--max-failures 1\): row-\d{4} \(.*Invalid image\)`},
		{name: "share", bound: "5%", bad: 90, most: 40, says: `stopped: \d+ of \d+ items failed in this run \(--max-failures 5%\): row-\d{4} \(.*Invalid image\), row`},
		{name: "number not reached", bound: "10", bad: 9},
		{name: "share not reached", bound: "5%", bad: 9},
	} {
		bad := spread(s.bad)
		p := staged(t, bin, s.name, among(bad), says(400, badImage), "-c", "4")
		plays = append(plays, p.begin(func(p *play) {
			if s.most == 0 {
				p.ends(1, "--max-failures", s.bound)
				p.hasNotSaid("max-failures")
				p.callsAgree()
			} else {
				p.ends(4, "--max-failures", s.bound)
				p.hasSaid(s.says, `^headrace: \d+ results? saved, \d+ items? failed \(.*out\.errors\.jsonl\), \d+ of \d+ not answered. Continue with:$`)
				if n := len(p.lines(p.failures)); n < 1 || n > s.most {
					p.faultf("%d items have failed, at most %d may", n, s.most)
				}
				if done := len(p.lines(p.out)) + len(p.lines(p.failures)); strings.HasSuffix(s.bound, "%") && done < 100 {
					p.faultf("a share of %d items decided", done)
				}
				p.ends(1)
			}
			p.failedAlone(bad, "invalid")
		}))
	}
	report(t, plays)
}

// Answers that a content filter has cut are results, and counted, in the summary and by
// headrace status. With --filtered fail they are failures, and their answers stay with them.
func TestFilteredAnswers(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	bad := spread(9)
	var plays []*play
	for name, body := range map[string]string{
		"cut short": filtered,
		"no words":  strings.NewReplacer(`"I"`, "null", `"content_filter"`, `"stop"`).Replace(filtered),
	} {
		keep := staged(t, bin, name+"/keep", among(bad), says(200, body))
		plays = append(plays, keep.begin(func(p *play) {
			p.ends(0)
			p.hasSaid(`items +360 answered .*9 filtered`)
			p.failed(nil)
			lines := p.lines(p.out)
			for _, row := range p.everyRow() {
				if l, is := lines[row]; !is || l.Headrace.Filtered == l.answers(row) {
					p.faultf("%s: %+v", row, l)
				}
			}
			status, err := exec.Command(p.bin, "status", p.out).CombinedOutput()
			if err != nil || !regexp.MustCompile(`filtered +9 of these`).Match(status) {
				p.faultf("status: %v: %s", err, status)
			}
		}))
		fail := staged(t, bin, name+"/fail", among(bad), says(200, body), "--filtered", "fail")
		plays = append(plays, fail.begin(func(p *play) {
			p.ends(1)
			p.hasSaid(`9 items failed for good`, `a content filter has cut the answer short or emptied it`)
			p.failedAlone(bad, "refused")
			p.callsAgree()
			for row, l := range p.lines(p.failures) {
				if l.Response == nil || !strings.Contains(string(l.Response.Body), `"finish_reason"`) {
					p.faultf("%s has lost its answer: %+v", row, l)
				}
			}
			p.healed(bad)
		}))
	}
	report(t, plays)
}

// A prompt that keeps failing while the others are answered is named once, before it has
// failed for good. The command does not say that the provider is down.
func TestAFailingPromptIsNamed(t *testing.T) {
	t.Parallel()
	bad := spread(1)
	p := staged(t, buildCommand(t), "failing", among(bad), resets, "-c", "2", configured(t, quick))
	report(t, []*play{p.begin(func(p *play) {
		p.ends(1)
		notice := regexp.MustCompile(`(?m)^headrace: 1 item keeps failing so far while the rest are answered: ` + bad[0] + ` \(connection reset by peer, 3 calls\)$`)
		if n := len(notice.FindAllString(p.said[0], -1)); n != 1 {
			p.faultf("the notice was said %d times:\n%s", n, p.said[0])
		}
		p.hasNotSaid("seems to be down")
		p.failedAlone(bad, "transport")
	})})
}

// A prompt that is answered in its fourth call is named as one that keeps failing so far, and
// never as one that has failed.
func TestAnAnsweredPromptIsNotNamedAsFailed(t *testing.T) {
	t.Parallel()
	late, calls := row(sceneRows/2), 0
	p := staged(t, buildCommand(t), "late", func(row string, _ int) bool {
		if row == late {
			calls++
		}
		return row == late && calls <= 3
	}, resets, "-c", "2", configured(t, quick))
	report(t, []*play{p.begin(func(p *play) {
		p.ends(0)
		p.hasSaid(`1 item keeps failing so far while the rest are answered: ` + late)
		p.hasNotSaid(`of the items fail`)
		p.failed(nil)
	})})
}

// A refusal that comes while the run drains is in the errors file, and its prompt is not
// asked again: a run that drains saves what is in flight.
func TestARefusalIsSavedWhileDraining(t *testing.T) {
	t.Parallel()
	bad, stopping := []string{row(sceneRows / 2)}, make(chan struct{})
	p := staged(t, buildCommand(t), "draining", among(bad), func(w http.ResponseWriter, r *http.Request) {
		comes(stopping, r.Context().Done())
		says(400, badImage)(w, r)
	}, "-c", "4")
	p.signal = syscall.SIGTERM
	report(t, []*play{p.begin(func(p *play) {
		heard := p.hears.says(`stopping`, 1)
		go func() {
			if comes(heard, p.ctx.Done()) {
				close(stopping)
			}
		}()
		if code := p.process(p.after(func() bool { return p.server.wasAsked(bad[0]) })); code != 130 {
			p.faultf("exit code %d", code)
		}
		p.failed(bad)
		p.ends(1)
		p.failedAlone(bad, "invalid")
		p.callsAgree()
	})})
}

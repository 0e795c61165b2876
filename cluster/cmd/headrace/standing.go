package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
)

// standWait is the time for hearing all workers and the keeper, each of which reports once a second.
const standWait = 1500 * time.Millisecond

// printStanding prints the state of a job, its workers, and what its limits let through.
func printStanding(out io.Writer, s *node.Standing) error {
	fmt.Fprintln(out, statusLine(s.JobStatus))
	if s.Record.Why != "" {
		fmt.Fprintln(out, s.Record.Why)
	}
	by, limit := boundOf(s)
	if limit != "" {
		limit = " (" + limit + ")"
	}
	fmt.Fprintf(out, "%d calls in flight; held by: %s%s\n", s.InFlight, strings.ReplaceAll(by, "_", " "), limit)
	if err := printOffice(out, s.Keeper, s.Epoch, s.Limits, s.Workers); err != nil {
		return err
	}
	for _, text := range refusalsOf(s) {
		fmt.Fprintln(out, text)
	}
	return nil
}

// refusalsOf lists the workers that cannot work on a job, and why.
func refusalsOf(s *node.Standing) (all []string) {
	for i := range s.Workers {
		w := &s.Workers[i]
		if r, refuses := w.Refuses[s.Record.Job]; refuses {
			all = append(all, fmt.Sprintf("%s cannot work on this job: %s", w.Name, r.Why))
		}
	}
	return all
}

// printOffice prints the keeper, the state of the limits, and the workers.
func printOffice(out io.Writer, keeper string, epoch uint64, limits []bus.LimitPicture, workers []node.WorkerReport) error {
	if keeper == "" {
		fmt.Fprintln(out, "\nkeeper: none found")
	} else {
		fmt.Fprintf(out, "\nkeeper: %s (number %d)\n", keeper, epoch)
	}
	if err := printLimits(out, limits); err != nil {
		return err
	}
	servers := slices.DeleteFunc(slices.Clone(workers), func(w node.WorkerReport) bool { return w.Serves == nil })
	workers = slices.DeleteFunc(slices.Clone(workers), func(w node.WorkerReport) bool { return w.Serves != nil })
	if err := printServers(out, servers); err != nil {
		return err
	}
	if len(workers) == 0 {
		fmt.Fprintln(out, "\nworkers: none found; start one with headrace worker")
		return nil
	}
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WORKER\tIN FLIGHT\tOF\tITEMS\tCALLS\tREFUSED")
	for i := range workers {
		w := &workers[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\n", w.Name, w.InFlight, w.Concurrency, w.Done, w.Calls, w.Refused)
	}
	return t.Flush()
}

// printServers prints a table of the servers that call under the limits for clients of their own, if there are any.
func printServers(out io.Writer, servers []node.WorkerReport) error {
	if len(servers) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERVE\tAT\tWEIGHT\tWAITING\tIN FLIGHT\tOF\tREQUESTS\tCALLS\tREFUSED")
	for i := range servers {
		w := &servers[i]
		fmt.Fprintf(t, "%s\t%s\t%g\t%d\t%d\t%d\t%d\t%d\t%d\n", w.Name, w.Serves.At, w.Serves.Weight, w.Serves.Waiting, w.InFlight, w.Concurrency, w.Done, w.Calls, w.Refused)
	}
	return t.Flush()
}

// printLimits prints a table of the limits. Below it a line for each stopped limit says how to
// have it flow again.
func printLimits(out io.Writer, limits []bus.LimitPicture) error {
	if len(limits) == 0 {
		fmt.Fprintln(out, "limits: none yet; there is one from the first call under it")
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LIMIT\tPHASE\tCALLS/S\tHELD BY\tKNOWN\tIN FLIGHT\tGIVEN\tREFUSED\tJOBS\tSERVE")
	for i := range limits {
		l := &limits[i]
		jobs, servers := holdersOf(l)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", l.Name, l.Phase, paceOf(l), heldByOf(l), knownOf(l), l.InFlight, l.Given, l.Refused, jobs, servers)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range limits {
		if l := &limits[i]; l.Stopped != "" {
			fmt.Fprintf(out, "%s has stopped: %s; headrace limits reset %s has it flow again\n", l.Name, whyLimitStopped(l), l.Name)
		}
	}
	for _, text := range stoppedAccounts(limits) {
		fmt.Fprintln(out, text)
	}
	return nil
}

// holdersOf counts the jobs under a limit, and the servers.
func holdersOf(l *bus.LimitPicture) (jobs, servers int) {
	for _, j := range l.Jobs {
		if node.IsServer(j.Job) {
			servers++
			continue
		}
		jobs++
	}
	return jobs, servers
}

// stoppedAccounts returns a line for each account that has stopped with several of its limits. The line gives the cause
// of the first.
func stoppedAccounts(limits []bus.LimitPicture) (all []string) {
	of := map[string][]string{}
	why := map[string]string{}
	for i := range limits {
		if l := &limits[i]; l.Stopped != "" && l.Account != "" {
			of[l.Account], why[l.Account] = append(of[l.Account], plainName(l.Name, limits)), cmp.Or(why[l.Account], l.Stopped)
		}
	}
	for _, account := range slices.Sorted(maps.Keys(of)) {
		if names := of[account]; len(names) > 1 {
			all = append(all, fmt.Sprintf("account %s has stopped, with its limits %s: %s", plainAccount(account), strings.Join(names, ", "), strings.TrimPrefix(why[account], "account "+account+": ")))
		}
	}
	return all
}

// paceOf returns how many calls a second a limit lets through; - where the limit has no pace.
func paceOf(l *bus.LimitPicture) string {
	if l.Pace == nil {
		return "-"
	}
	return fmt.Sprintf("%.3g", *l.Pace)
}

// heldByOf returns what holds the calls of a limit back. A keeper names the input as the bound where workers ask for no
// more permits than they get, and that counts as nothing.
func heldByOf(l *bus.LimitPicture) string {
	switch l.Bound {
	case "", "input", "tail":
		return "nothing"
	}
	text := strings.ReplaceAll(l.Bound, "_", " ")
	if l.WaitS >= 1 {
		text += fmt.Sprintf(", for %.0f s", l.WaitS)
	}
	return text
}

// perMinute converts rates per second to rates per minute.
const perMinute = 60

// knownOf lists the known rates of a limit, per minute.
func knownOf(l *bus.LimitPicture) string {
	var all []string
	for _, k := range l.Known {
		all = append(all, fmt.Sprintf("%.4g %s/min (%s)", k.PerSecond*perMinute, strings.ReplaceAll(k.Limit, "_", " "), k.Source))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}

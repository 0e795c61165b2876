package exposition

import (
	"bytes"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// The metrics of a process, by the names that Prometheus' clients give them. Dashboards for Go programs know them.
var (
	goInfo       = &Family{Name: "go_info", Help: "The version of Go; always 1.", Kind: Gauge, Labels: []string{"version"}}
	processStart = &Family{Name: "process_start_time_seconds", Help: "When the process began, as Unix time.", Kind: Gauge}
	processCPU   = &Family{Name: "process_cpu_seconds_total", Help: "Time of processors that was used.", Kind: Counter}
	processSize  = &Family{Name: "process_virtual_memory_bytes", Help: "Virtual memory.", Kind: Gauge}
	processRSS   = &Family{Name: "process_resident_memory_bytes", Help: "Resident memory.", Kind: Gauge}
	processFiles = &Family{Name: "process_open_fds", Help: "Open files and connections.", Kind: Gauge}
	processMost  = &Family{Name: "process_max_fds", Help: "Files and connections that may be open.", Kind: Gauge}
)

// ofRuntime are the figures that Go's runtime has of itself.
var ofRuntime = []struct {
	sample string
	family Family
}{
	{"/sched/goroutines:goroutines", Family{Name: "go_goroutines", Help: "Goroutines.", Kind: Gauge}},
	{"/sched/gomaxprocs:threads", Family{Name: "go_sched_gomaxprocs_threads", Help: "Threads that run Go code at once, at most.", Kind: Gauge}},
	{"/memory/classes/heap/objects:bytes", Family{Name: "go_memstats_alloc_bytes", Help: "Memory of objects that are in use or not yet freed.", Kind: Gauge}},
	{"/gc/heap/allocs:bytes", Family{Name: "go_memstats_alloc_bytes_total", Help: "Memory of all objects since the start.", Kind: Counter}},
	{"/gc/heap/goal:bytes", Family{Name: "go_memstats_next_gc_bytes", Help: "Size of the heap at which the next collection ends.", Kind: Gauge}},
	{"/memory/classes/total:bytes", Family{Name: "go_memstats_sys_bytes", Help: "Memory that was taken from the system.", Kind: Gauge}},
	{"/gc/cycles/total:gc-cycles", Family{Name: "go_gc_cycles_total_gc_cycles_total", Help: "Collections of garbage since the start.", Kind: Counter}},
}

// began is the instant at which this process began, but for the time that the runtime took before.
var began = time.Now()

// Process shows the figures of this process: of the Go runtime, and what Linux tells under /proc/self.
type Process struct{}

// Collect shows them as they are now. Nothing is stopped for it.
func (Process) Collect(to *Page) {
	to.Add(goInfo, 1, runtime.Version())
	samples := make([]metrics.Sample, len(ofRuntime))
	for k := range ofRuntime {
		samples[k].Name = ofRuntime[k].sample
	}
	metrics.Read(samples)
	for k := range samples {
		if v := samples[k].Value; v.Kind() == metrics.KindUint64 { // another kind: this version of Go has no such figure
			to.Add(&ofRuntime[k].family, float64(v.Uint64()))
		}
	}
	to.Add(processStart, float64(began.UnixMilli())/1000)
	if stat, err := os.ReadFile("/proc/self/stat"); err == nil {
		collectStat(to, string(stat))
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		to.Add(processFiles, float64(len(open)-1)) // one of them is the folder's own
	}
	if limits, err := os.ReadFile("/proc/self/limits"); err == nil {
		_, line, _ := bytes.Cut(limits, []byte("Max open files"))
		if words := strings.Fields(string(line)); len(words) > 0 {
			if most, err := strconv.ParseFloat(words[0], 64); err == nil { // else it is "unlimited"
				to.Add(processMost, most)
			}
		}
	}
}

// ticksPerSecond are how many a second Linux counts the time of processors in: its promise to programs, on every machine
// that Go knows.
const ticksPerSecond = 100

// collectStat adds the figures in /proc/self/stat. It counts fields after the program's name, which may have blanks.
func collectStat(to *Page, stat string) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 22 {
		return
	}
	number := func(k int) float64 {
		n, _ := strconv.ParseFloat(fields[k], 64)
		return n
	}
	to.Add(processCPU, (number(11)+number(12))/ticksPerSecond) // in the program and in the kernel
	to.Add(processSize, number(20))
	to.Add(processRSS, number(21)*float64(os.Getpagesize()))
}

package settings

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// This file is about lanes and pools that go with a job to the workers of a cluster. Another person than the worker's
// may have written them, so they must not say which files or headers of that machine go where.
//
//	file of --config ─▶ Fleet.Text ─▶ a setting of the job ─▶ BringLanes ─▶ Fleet, with the keys of each worker

// mostLanesOfJob bounds the lanes and pools that a job brings to its workers, in bytes. They stand in its record, which
// each change writes anew. A lane takes some 200.
const mostLanesOfJob = 64 << 10

// lanesOfJob names the place of lanes that a job brings, in complaints.
const lanesOfJob = "the job's lanes"

// textOf returns the given sections of the file as the text of a file of their own.
func textOf(sections ...*ast.MappingValueNode) string {
	var text strings.Builder
	for _, section := range sections {
		if section != nil {
			text.WriteString(section.String() + "\n")
		}
	}
	return text.String()
}

// BringLanes sets the text of lanes and pools, in place of those of the file of --config.
func (f *Flags) BringLanes(text string) { f.lanesText, f.ManyLanes, f.InJob = text, true, true }

// fromJob reads the lanes and pools that a job has brought.
func (f *Flags) fromJob() error {
	if f.lanesText == "" {
		return nil
	}
	f.Config = lanesOfJob
	file, err := fileOfFlags.Parse(f.Config, f.lanesText)
	if err != nil {
		return err
	}
	f.Lanes = newLaneSettings(f.Config)
	config := configFile{File: file, flags: f.All, lanes: f.Lanes, headers: &f.headers}
	for _, entry := range config.Entries() {
		if !config.keepLanesAndPools(entry) {
			config.Complain(entry.Key, "there is more than lanes and pools", "a job brings nothing else in this place")
		}
	}
	f.Fleet = config.readFleet(config.laneNodes, config.poolNodes)
	return Usage(config.Faults...)
}

// checkInJob refuses lanes of a job that name files, headers or keys of the machine that runs it. That
// machine belongs to another person.
func (f *Flags) checkInJob() error {
	if !f.InJob || f.Fleet == nil {
		return nil
	}
	var faults []error
	if n := len(f.Fleet.Text); n > mostLanesOfJob {
		faults = append(faults, fmt.Errorf("%s:%d: lanes and pools have %d bytes, and a job brings %d at most to its workers", f.Config, f.Fleet.Line, n, mostLanesOfJob))
	}
	for i := range f.Fleet.Lanes {
		lane := &f.Fleet.Lanes[i]
		faults = append(faults, lane.inFile(f.Config, lane.faultInJob()))
	}
	return errors.Join(faults...)
}

// faultInJob returns the first reason for which a lane cannot go with a job.
func (l *LaneSpec) faultInJob() error {
	f := l.Flags
	switch {
	case len(f.headers) > 0:
		return errors.New("headers: they do not go with a job: give --header to a worker of one provider")
	case f.KeyFile != "":
		return errors.New("api-key-file: a job names no file of a worker: name a variable with api-key-env")
	case f.KeyEnvGiven && !f.SendsNoKey() && f.BaseURL != "" && !f.Vendor.Answers(f.BaseURL) && !IsLoopback(HostOf(f.BaseURL)):
		return fmt.Errorf("api-key-env: a job sends keys of workers only to the servers of their provider and to the worker's own machine, and not to %s", HostOf(f.BaseURL))
	}
	return nil
}

// Package promptfile runs a prompt file so that each item is answered once, however often
// the program is stopped and started.
//
// A run checks the whole input before any call, unless the input can be read only once, and
// changes no file before that. A result is on its way to the disk before its item counts as
// done, and an item whose result is on the disk is not asked again. An item that was not
// run, because the run ended first, has no line anywhere: a later run asks it. No id stands
// twice in an output: an id that is taken gets a suffix. The line of an item has its cost
// if the price is known, and no cost otherwise. When Run has returned, every line is safe
// or named as unsaved.
//
//	                 Plan: what is there to do, which lines are bad
//	                   │
//	prompts.jsonl ─▶ intake ─Item─▶ batch.Stream ─▶ your call ─▶ Result ─▶ sink ─▶ results.jsonl
//	      ▲            ▲                              ▲                     │    └▶ results.errors.jsonl
//	  (a stream:     past: what earlier runs          └─ room: as many      └─▶ Sums
//	   read apart)   have ended, by their keys           as are unwritten
//
// A dozen lines make a program (see the example): [File] names the input, [Open] locks the
// output and reads what earlier runs have left in it, and [Job.Run] does the rest. A
// program that reports in between calls [Job.Plan] and [Job.Begin] before [Job.Run]. [Scan]
// only reports what an input holds.
//
// Package prompts reads prompts, package journal defines lines and reads them back, and
// package saver writes them to the disk.
package promptfile

// Package promptfile runs a prompt file so that each item is answered once, however
// often the program is stopped and started.
//
// It promises that the whole input is checked before any call (unless it can be read only
// once), that no file is changed before that; that a result is on its way to the disk before
// its item counts as done, and that what is on the disk is not asked again. An item that was
// not run, because the run ended first, has no line anywhere: a later run asks it. No id
// stands twice in an output: one that is taken gets a suffix. What an item has cost stands in
// its line where its price is known, and nothing where it is not. When Run has returned, every
// line is safe or named as unsaved.
//
//	                 Plan: what is there to do, which lines are bad
//	                   │
//	prompts.jsonl ─▶ intake ─Item─▶ batch.Stream ─▶ your call ─▶ Result ─▶ sink ─▶ results.jsonl
//	      ▲            ▲                              ▲                     │    └▶ results.errors.jsonl
//	  (a stream:     past: what earlier runs          └─ room: as many      └─▶ Sums
//	   read apart)   have ended, by their keys           as are unwritten
//
// A dozen lines are a program (see the example): [File] names the input, [Open] locks the
// output and reads what earlier runs have left in it, [Job.Run] does all the rest. Who
// wants to say more in between calls [Job.Plan] and [Job.Begin] before it; who only wants
// to know what is in an input calls [Scan].
//
// Prompts are package prompts', lines and what is read back of them package journal's,
// and package saver's is how they get to the disk.
package promptfile

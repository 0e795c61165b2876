// Package disk makes files durable. The functions that wait for the disk, and that give a file
// its name, are fields of a [Disk], so that a test can watch them. Own claims an open file for
// this process, under any name.
//
//	write ─▶ SyncData: the bytes last ─▶ Rename: at once or not at all ─▶ SyncFolder: the name lasts
package disk

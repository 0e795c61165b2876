// Package disk makes files durable. The functions that wait for the disk, and that give a file
// its name, are fields of a [Disk], so that a test can watch them. Own claims an open file for
// this process, under any name. Replace keeps the rights of an old file and clears up after a
// crash; Write sets them, for small files without an owner. Only this package replaces files.
//
//	new file in the same folder ─▶ write ─▶ SyncData: the bytes last ─▶ Rename: at once or not at all ─▶ SyncFolder: the name lasts
package disk

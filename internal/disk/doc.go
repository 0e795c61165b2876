// Package disk makes files durable. The functions that wait for the disk and that give a
// file its name stand only here, so that a test can watch them. Own tells which process an
// open file belongs to, under any name.
//
//	write ─▶ SyncData: the bytes last ─▶ Rename: at once or not at all ─▶ SyncFolder: the name lasts
package disk

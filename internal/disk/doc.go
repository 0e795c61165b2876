// Package disk is where files are made to last: what waits for the disk, and what gives
// a file its name, stands here and nowhere else, so that a test can look on. Own tells whose
// an open file is, by whatever name.
//
//	write ─▶ SyncData: the bytes last ─▶ Rename: at once or not at all ─▶ SyncFolder: the name lasts
package disk

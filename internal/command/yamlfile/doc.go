// Package yamlfile reads the YAML files of users: those of --config and of --clients.
//
// It promises that nothing in a file is executed, expanded or included, that no file keeps the command
// busy, and that each complaint names the file, the line and what to write.
//
//	path ─ Form.Read ─▶ File ─ Entries ─▶ names and values ─ Plain, Section, List ─▶ words
//	                      └─ Complain ─▶ Faults
package yamlfile

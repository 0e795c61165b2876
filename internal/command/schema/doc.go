// Package schema checks answers of models against the JSON Schema in a user's file.
//
// It promises that a schema makes no connection and opens no file outside of its own folder, and that
// no answer takes the program down or keeps it busy. Each complaint about an answer is one short line.
//
//	file ─ Load ─▶ Schema ─ Check ─▶ what is wrong with an answer; nil: nothing
//	                          ▲
//	body ─ its words, or the arguments of its only call of a tool ─ without a fence of Markdown
package schema

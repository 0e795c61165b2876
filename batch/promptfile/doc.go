// Package promptfile runs a prompt file, each item once: it ties package prompts, which
// reads the questions, to journal and saver, which keep the answers.
package promptfile

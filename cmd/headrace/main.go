package main

import (
	"os"

	"github.com/headrace/headrace/internal/command"
)

func main() { os.Exit(command.Main()) }

// Command prices writes the built-in price list of headrace, from the data of genai-prices
// (MIT), an npm package:
//
//	go run ./internal/command/price/refresh
//
// npm fetches the package into a temporary folder, and Node.js prints its data. convert
// turns the data into the list. No price is typed by hand. The package also says what some
// hundred usages cost, against which a test compares the prices of headrace.
package main

import (
	"bytes"
	"context"
	_ "embed" // for the script
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

// pack is the package's name.
const pack = "@pydantic/genai-prices"

func main() {
	version := flag.String("version", "latest", "version of "+pack)
	out := flag.String("o", "internal/command/price/list.json", "file of the list")
	oracle := flag.String("oracle", "internal/command/price/testdata/oracle.jsonl", "file of the package's own costs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := refresh(ctx, *version, *out, *oracle); err != nil {
		fmt.Fprintln(os.Stderr, "prices:", err)
		os.Exit(1) //nolint:gocritic // the signal's handler needs no undoing at exit
	}
}

//go:embed oracle.js
var oracleScript string

// refresh writes the list of one version, and the costs that this version computes.
func refresh(ctx context.Context, version, out, oracle string) error {
	dir, err := os.MkdirTemp("", "prices")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rel, data, err := fetch(ctx, dir, version)
	if err != nil {
		return err
	}
	l, leftOut, err := convert(rel, byVendor, data)
	if err != nil {
		return err
	}
	for _, what := range leftOut {
		fmt.Fprintln(os.Stderr, "prices: left out:", what)
	}
	if err = os.WriteFile(out, l.text(), 0o644); err != nil { //nolint:gosec // a file of the repository
		return err
	}
	costs, err := output(ctx, dir, "node", "-e", oracleScript, "", pack)
	if err != nil {
		return err
	}
	return os.WriteFile(oracle, costs, 0o644) //nolint:gosec // a file of the repository
}

// release is one version of the package.
type release struct {
	version string
	day     time.Time // of its publication
	license string
}

// fetch installs the package below dir, and returns the providers that vendors need, as JSON.
func fetch(ctx context.Context, dir, version string) (rel release, data []byte, err error) {
	if _, err = output(ctx, dir, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", pack+"@"+version); err != nil {
		return rel, nil, err
	}
	home := filepath.Join(dir, "node_modules", filepath.FromSlash(pack))
	var about struct{ Version string }
	text, err := os.ReadFile(filepath.Join(home, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err != nil {
		return rel, nil, err
	}
	license, err := os.ReadFile(filepath.Join(home, "LICENSE"))
	if err != nil {
		return rel, nil, err
	}
	text, err = output(ctx, dir, "npm", "view", pack+"@"+about.Version, "time", "--json")
	if err != nil {
		return rel, nil, err
	}
	var days map[string]time.Time
	if err = json.Unmarshal(text, &days); err != nil {
		return rel, nil, fmt.Errorf("npm view time: %w", err)
	}
	const script = `const p = require(process.argv[1])
console.log(JSON.stringify(process.argv.slice(2).map(id => p.findProvider({providerId: id}))))`
	data, err = output(ctx, dir, "node", append([]string{"-e", script, pack}, sources(byVendor)...)...)
	return release{about.Version, days[about.Version], string(license)}, data, err
}

// output runs a program in a folder and returns its standard output.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // npm and node, as named above
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return text, nil
}

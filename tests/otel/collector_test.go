package otel

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// settings has the collector receive OTLP over HTTP, and print all that comes to a file.
const settings = `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {logs: {output_paths: [%q], level: info}, metrics: {level: none}}
  pipelines:
    metrics: {receivers: [otlp], exporters: [debug]}
    traces: {receivers: [otlp], exporters: [debug]}
`

// collect starts a collector, and returns its address and the file of what it prints. stop ends it.
func collect(t *testing.T) (address, printed string, stop func()) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, printed = free.Addr().String(), filepath.Join(t.TempDir(), "printed")
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	ours, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "0.145.0"}, DisableGracefulShutdown: true,
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{"yaml:" + fmt.Sprintf(settings, address, printed)},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- ours.Run(context.Background()) }()
	for ours.GetState() != otelcol.StateRunning {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(printed)
			t.Fatalf("the collector has ended: %v\n%s", err, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return address, printed, func() {
		ours.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// factories returns what the collector is made of.
func factories() (f otelcol.Factories, err error) {
	f.Telemetry = otelconftelemetry.NewFactory()
	if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](debugexporter.NewFactory())
	return f, err
}

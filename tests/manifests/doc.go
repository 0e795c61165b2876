// Package manifests tries the examples in examples/cluster that this repository has no cluster
// for: what kubectl and docker compose would say of them before anything is started.
//
// It promises that each manifest is one that a server of today knows every field of, has what its
// schema asks for, and fits the others: selectors, ports, volumes, settings and secrets.
//
//	examples/cluster/kubernetes/*.yaml ─┬─ strict decoding into k8s.io/api: no unknown field
//	                  secret.sh ────────┤─ the API's OpenAPI schemas: types, what is required
//	                                    └─ each reference is to something that is there
//	examples/cluster/compose.yaml ────── compose-go: schema, interpolation, dependencies
//
// The schemas are those that client-go carries for its own tests (core, apps and batch). Policy's
// is not among them: there, strict decoding must do. What only a server can say is not tried.
package manifests

// Starts Portkey's gateway on a free port of loopback: by itself it listens everywhere.
import { Server } from "node:net";

const listen = Server.prototype.listen;
Server.prototype.listen = function () {
  return listen.call(this, 0, "127.0.0.1", () =>
    console.log(`\nlistening on http://127.0.0.1:${this.address().port}`));
};
process.argv.push("--headless");
process.on("SIGTERM", () => process.exit(0));
await import("@portkey-ai/gateway/build/start-server.js");

import type { Launcher } from "../launcher/index.ts";
import type { Counters, Log } from "../telemetry/index.ts";
import type { Machine } from "./machine.ts";

const MAX_REQUESTS = 100;

/** What a process is busy with, for whoever wonders why it is: at level info, so that it is seen without --debug. */
export function dump(launcher: Launcher, counters: Counters, machine: Machine, log: Log): void {
  const { view } = launcher;
  log.info(
    {
      ...machine.memory(),
      nodes: view.nodes.byId.size,
      requests: view.requests.byId.size,
      components: view.components.size,
      complete: view.complete,
    },
    "dump: this process",
  );
  for (const { name, labels, value } of counters.list()) log.info({ ...labels, value }, `dump: ${name}`);
  let left = MAX_REQUESTS;
  for (const [id, { record }] of view.requests.byId) {
    if (left-- === 0) break;
    log.info({ request: id, state: record.state, verdict: launcher.verdict(id) }, "dump: a request");
  }
}

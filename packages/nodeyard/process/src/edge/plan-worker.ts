import { parentPort, workerData } from "node:worker_threads";
import { type ConfigFiles, loadConfig } from "@nodeyard/config";
import { compare, DemandBook, type PlanRow, play, type TenantRow } from "@nodeyard/planning";
import { messageOf } from "@nodeyard/runtime";
import { readEvents } from "@nodeyard/telemetry";
import { withAnyDriver } from "../any-driver.ts";
import { Drivers } from "../driver-registry.ts";
import { launcherConfig, openConfig } from "../open-config.ts";
import { loadModule } from "./load-module.ts";

/** What the thread is given: it reads files and journal itself, because only plain data passes between threads. */
export interface PlanOrder {
  /** Today's configuration. */
  readonly files: ConfigFiles;
  /** The one to plan with; no variable of the environment is filled in. */
  readonly text: string;
  readonly journal: string;
  /** Requests of so many days before the last one, and of those the latest so many. */
  readonly days: number;
  readonly most: number;
}

/** Both configurations under the same demand, or why there is none. */
export type PlanAnswer =
  | {
      readonly requests: number;
      readonly rows: readonly PlanRow[];
      readonly tenants: readonly TenantRow[];
      readonly lost: readonly string[];
      readonly assumed: readonly string[];
    }
  | { readonly problem: string };

const DAY_S = 86_400;

/** Runs in a thread with its own memory: playing launchers takes seconds, and must not delay the work of the process. */
async function answer({ files, text, journal, days, most }: PlanOrder): Promise<PlanAnswer> {
  const installed = new Drivers(loadModule);
  const drivers = withAnyDriver(installed);
  const today = await openConfig(files, { env: process.env }, drivers);
  const planned = loadConfig({ text, path: "configuration", env: {}, drivers });
  if (planned.config === undefined) throw new Error("the configuration has errors");
  const book = new DemandBook();
  const problem = readEvents(journal, DemandBook.events, 0, (event) => book.event(event));
  if (problem !== null) return { problem };
  const { requests } = book.demand();
  const last = requests.at(-1)?.at ?? 0;
  const demand = book.demand(Math.max(last - days * DAY_S, requests.at(-most)?.at ?? 0));
  if (demand.requests.length === 0) return { requests: 0, rows: [], tenants: [], lost: [], assumed: [] };
  const playing = (config: typeof today.config) =>
    play({
      config: launcherConfig(config),
      demand,
      seed: 1,
      driverOf: (name) => installed.ifInstalled(name),
    });
  const [before, after] = [await playing(today.config), await playing(planned.config)];
  const assumed = [...new Set([...before.assumed, ...after.assumed])];
  return { requests: demand.requests.length, ...compare(before, after), assumed };
}

if (parentPort !== null) {
  const port = parentPort;
  void answer(workerData as PlanOrder)
    .catch((error: unknown): PlanAnswer => ({ problem: messageOf(error) }))
    .then((done) => port.postMessage(done));
}

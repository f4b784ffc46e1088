import { createHmac, timingSafeEqual } from "node:crypto";
import {
  type Connector,
  type ConnectorParts,
  connectorKind,
  type Facade,
  openFacade,
  type RunnerJob,
  RunnerPool,
  RunnerPools,
  type RunnerSource,
  readSecret,
} from "@nodeyard/connect";
import { abortable, type Clock, messageOf, settledWithin, sleep } from "@nodeyard/runtime";
import { GiteaApi, type GiteaJob } from "./api.ts";
import { type Options, options, type Rule } from "./options.ts";

/** Jobs of Gitea Actions, each on a runner of its own that Gitea forgets after one job. */
export const gitea = connectorKind("gitea", options, async (given, parts): Promise<Connector> => {
  const api = new GiteaApi(parts.clock, given.url, given.scope, readSecret(given["token-file"]));
  const pools = given.runners.map((rule) => {
    const lease = { labels: [rule.label], for_seconds: rule.time, priority: rule.priority };
    const wish = {
      system: "gitea",
      key: rule["runs-on"].toSorted().join(),
      lease,
      idleMs: given.idle * 1_000,
    };
    return { rule, pool: new RunnerPool(runnersOf(api, rule, given), wish, parts) };
  });
  const all = new RunnerPools(
    pools.map(({ pool }) => pool),
    "gitea",
    (name) => remove(api, name),
    parts,
  );
  const stop = new AbortController();
  const pause = new Pause(parts.clock, given.poll * 1_000);
  const hook = given.webhook && (await openHook(given.webhook, parts, () => pause.end()));
  const looking = look(api, pools, all, pause, parts, stop.signal);
  return {
    async close(graceMs) {
      stop.abort(new Error("the connector is stopped"));
      const ends = [looking, hook?.close(graceMs), all.close(graceMs)];
      await settledWithin(parts.clock, graceMs, Promise.all(ends));
    },
  };
});

/**
 * Calls `onEvent` for each event of jobs. What it says is not used: events come late, twice or never, and the jobs themselves are looked at
 * (docs.gitea.com/usage/webhooks).
 */
function openHook(
  { listen, "secret-file": file }: NonNullable<Options["webhook"]>,
  parts: ConnectorParts,
  onEvent: () => void,
): Promise<Facade> {
  const secret = readSecret(file);
  return openFacade({ listen, isSigned: true }, parts, (app) => {
    app.post("/", async ({ headers, body }, reply) => {
      const wanted = createHmac("sha256", secret)
        .update(String(body ?? ""))
        .digest();
      const given = Buffer.from(String(headers["x-gitea-signature"]), "hex");
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted))
        return reply.code(401).send("the signature is not that of this connector's secret\n");
      if (headers["x-gitea-event"] === "workflow_job") onEvent();
      return reply.code(204).send();
    });
  });
}

/** Between two looks at the jobs. */
class Pause {
  readonly #clock: Clock;
  readonly #ms: number;
  #next = new AbortController();

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  /** Ends the one that is waited for, or else the next: what has happened during a look may not be in it. */
  end(): void {
    this.#next.abort();
  }

  /** Never rejects. */
  async wait(stopping: AbortSignal): Promise<void> {
    await sleep(this.#clock, this.#ms, AbortSignal.any([stopping, this.#next.signal])).catch(() => {});
    this.#next = new AbortController();
  }
}

interface Served {
  readonly rule: Rule;
  readonly pool: RunnerPool;
}

/** Compares jobs with runners again and again, until it is stopped. Never rejects. */
async function look(
  api: GiteaApi,
  pools: readonly Served[],
  all: RunnerPools,
  pause: Pause,
  { log, counters, name }: ConnectorParts,
  stopping: AbortSignal,
): Promise<void> {
  let isAdopted = false;
  let isFailing = false;
  while (!stopping.aborted) {
    try {
      // Before any new runner: those of the process before serve the same jobs.
      if (!isAdopted) await abortable(all.adopt(), stopping);
      if (!isAdopted) await sweep(api, all, name, log);
      isAdopted = true;
      // In this order: a job that starts meanwhile is in both, and counts once.
      const [queued, working] = [await api.jobs("queued"), await api.jobs("in_progress")];
      if (stopping.aborted) return;
      for (const { rule, count } of demand(pools, working, queued)) rule.pool.want(count);
      if (isFailing) log.info({}, "Gitea and the pool answer again");
      isFailing = false;
      counters.add("connect.calls", 1, { connector: name, call: "look", result: "ok" });
    } catch (error) {
      if (stopping.aborted) return;
      counters.add("connect.calls", 1, { connector: name, call: "look", result: "failed" });
      if (!isFailing) log.error({ error: messageOf(error) }, "cannot see which jobs wait; will retry");
      isFailing = true;
    }
    await pause.wait(stopping);
  }
}

/** Removes runners of this connector whose leases are gone: Gitea keeps those that never had a job. */
async function sweep(
  api: GiteaApi,
  all: RunnerPools,
  name: string,
  log: ConnectorParts["log"],
): Promise<void> {
  const left = (await api.runners()).filter(
    (one) => new RegExp(`^${name}-[0-9a-f]{12}$`).test(one.name) && !all.has(one.name),
  );
  for (const one of left)
    if ((await remove(api, one.name)) === "removed")
      log.warn({ runner: one.name }, "removed a runner without a lease");
}

/** How many runners each rule needs; says to each pool which runner has which job, and which has one no more. */
function demand(pools: readonly Served[], working: readonly GiteaJob[], queued: readonly GiteaJob[]) {
  const counts = new Map(pools.map((rule) => [rule, 0]));
  const add = (rule: Served) => counts.set(rule, counts.get(rule)! + 1);
  for (const job of working) {
    const rule = pools.find(({ pool }) => pool.runners.has(job.runner_name ?? ""));
    if (rule === undefined) continue;
    rule.pool.busy(job.runner_name!, named(job));
    add(rule);
  }
  for (const { pool } of pools)
    for (const { name, state } of pool.runners.values())
      if (state === "busy" && !working.some((job) => job.runner_name === name)) pool.done(name);
  for (const { id, labels } of queued) {
    if (working.some((job) => job.id === id)) continue;
    // Gitea gives a job to any runner that has all of its labels.
    const rule = pools.find(({ rule }) => (labels ?? []).every((label) => rule["runs-on"].includes(label)));
    if (rule !== undefined) add(rule);
  }
  return [...counts].map(([rule, count]) => ({ rule, count: Math.min(count, rule.rule.most) }));
}

function named({ id, name, html_url }: GiteaJob): RunnerJob {
  return { id: String(id), name, url: html_url || null };
}

function runnersOf(api: GiteaApi, { "runs-on": labels }: Rule, { url, start }: Options): RunnerSource {
  return {
    remove: (name) => remove(api, name),
    async jobOf(name) {
      const job = await api.jobOf(name);
      return job && named(job);
    },
    endedWell: (job) => api.succeeded(job.id, job.url),
    async begin(name) {
      // Left from a start whose connection broke before the node had it.
      if ((await remove(api, name)) === "busy") throw new Error(`a runner ${name} has a job elsewhere`);
      const { id, uuid, token } = await api.register(name, labels);
      // The file of act_runner (internal/pkg/config/registration.go). The registration token stays here.
      const hosted = labels.map((label) => `${label}:host`);
      const runner = { id: Number(id), uuid, name, token, address: url, labels: hosted, ephemeral: true };
      const script = `printf '%s' "$RUNNER_FILE" >.runner\nunset RUNNER_FILE\n${start}`;
      return { script, env: { RUNNER_FILE: JSON.stringify(runner) } };
    },
  };
}

/**
 * Deletes the runners of this name that have no job; they are disabled first, so that none takes one meanwhile. Lists of Gitea have no order,
 * so a long one may lack a job: a runner says itself, too, whether it works.
 */
async function remove(api: GiteaApi, name: string): Promise<"removed" | "busy"> {
  const mine = (await api.runners()).filter((one) => one.name === name);
  let isBusy = false;
  for (const { id } of mine) {
    await api.disable(id, true);
    try {
      const isWorking =
        (await api.works(id)) || (await api.jobs("in_progress")).some((job) => job.runner_id === id);
      if (!isWorking) {
        await api.delete(id);
        continue;
      }
    } catch (error) {
      // Else it would wait for a job that it never gets.
      await api.disable(id, false);
      throw error;
    }
    isBusy = true;
    await api.disable(id, false);
  }
  return isBusy ? "busy" : "removed";
}

import {
  type Connector,
  type ConnectorParts,
  connectorKind,
  RunnerPool,
  type RunnerSource,
  readSecret,
} from "@nodeyard/connect";
import { abortable, messageOf, sleep } from "@nodeyard/runtime";
import { GiteaApi, type GiteaJob } from "./api.ts";
import { type Options, options, type Rule } from "./options.ts";

/** Jobs of Gitea Actions, each on a runner of its own that Gitea forgets after one job. */
export const gitea = connectorKind("gitea", options, async (given, parts): Promise<Connector> => {
  const api = new GiteaApi(parts.clock, given.url, given.scope, readSecret(given["token-file"]));
  const pools = given.runners.map((rule) => {
    const lease = { labels: [rule.label], for_seconds: rule.time, priority: rule.priority };
    const wish = { system: "gitea", key: rule["runs-on"].join(), lease, idleMs: given.idle * 1_000 };
    return { rule, pool: new RunnerPool(runnersOf(api, rule, given), wish, parts) };
  });
  const stop = new AbortController();
  const looking = look(api, pools, given.poll * 1_000, parts, stop.signal);
  return {
    async close() {
      stop.abort(new Error("the connector is stopped"));
      await Promise.all([looking, ...pools.map(({ pool }) => pool.close())]);
    },
  };
});

interface Served {
  readonly rule: Rule;
  readonly pool: RunnerPool;
}

/** Compares jobs with runners again and again, until it is stopped. Never rejects. */
async function look(
  api: GiteaApi,
  pools: readonly Served[],
  pollMs: number,
  { clock, log, counters, name }: ConnectorParts,
  stopping: AbortSignal,
): Promise<void> {
  let isAdopted = false;
  let isFailing = false;
  while (!stopping.aborted) {
    try {
      // Before any new runner: those of the process before serve the same jobs.
      if (!isAdopted) await abortable(Promise.all(pools.map(({ pool }) => pool.adopt())), stopping);
      isAdopted = true;
      const [working, queued] = [await api.jobs("in_progress"), await api.jobs("queued")];
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
    await sleep(clock, pollMs, stopping).catch(() => {});
  }
}

/** How many runners each rule needs; says to each pool which runner has which job. */
function demand(pools: readonly Served[], working: readonly GiteaJob[], queued: readonly GiteaJob[]) {
  const counts = new Map(pools.map((rule) => [rule, 0]));
  const add = (rule: Served) => counts.set(rule, counts.get(rule)! + 1);
  for (const job of working) {
    const rule = pools.find(({ pool }) => pool.runners.has(job.runner_name ?? ""));
    if (rule === undefined) continue;
    rule.pool.busy(job.runner_name!, { id: String(job.id), name: job.name, url: job.html_url || null });
    add(rule);
  }
  for (const { labels } of queued) {
    // Gitea gives a job to any runner that has all of its labels.
    const rule = pools.find(({ rule }) => (labels ?? []).every((label) => rule["runs-on"].includes(label)));
    if (rule !== undefined) add(rule);
  }
  return [...counts].map(([rule, count]) => ({ rule, count: Math.min(count, rule.rule.most) }));
}

function runnersOf(api: GiteaApi, { "runs-on": labels }: Rule, { url, start }: Options): RunnerSource {
  /** The runners of this name that work on no job are deleted; they are disabled first, so that none takes one meanwhile. */
  const remove = async (name: string) => {
    const ids = await api.runners(name);
    for (const id of ids) await api.disable(id, true);
    const working = ids.length === 0 ? [] : await api.jobs("in_progress");
    const busy = ids.filter((id) => working.some((job) => job.runner_id === id));
    for (const id of ids) await (busy.includes(id) ? api.disable(id, false) : api.delete(id));
    return busy.length > 0 ? "busy" : "removed";
  };
  return {
    remove,
    async begin(name) {
      // Left from a start whose connection broke before the node had it.
      await remove(name);
      const { id, uuid, token } = await api.register(name, labels);
      // The file of act_runner (internal/pkg/config/registration.go). The registration token stays here.
      const hosted = labels.map((label) => `${label}:host`);
      const runner = { id: Number(id), uuid, name, token, address: url, labels: hosted, ephemeral: true };
      const script = `printf '%s' "$NODEYARD_RUNNER" >.runner\nunset NODEYARD_RUNNER\n${start}`;
      return { script, env: { NODEYARD_RUNNER: JSON.stringify(runner) } };
    },
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom, systemClock, systemRandom } from "@nodeyard/runtime";
import { connectZooKeeperTree } from "@nodeyard/tree";
import { until } from "../chaos/patience.ts";
import { readZooKeeperLog } from "../chaos/raw-log/zookeeper.ts";
import { ledgerSums, leftovers } from "../chaos/verdict.ts";
import { workOf } from "./clients.ts";
import { DaySite, MORTALS, type Mortal, TENANT } from "./site.ts";
import { judge, ledgerFaults, type Verdict } from "./verdict.ts";

export interface DayOptions {
  readonly jobs: number;
  readonly seed: number;
  /** Aborted: no job begins any more, and the day is judged. */
  readonly evening?: AbortSignal;
  /** Told what happens. */
  readonly note: (what: string) => void;
}

export interface DayResult extends Verdict {
  readonly jobs: Readonly<Record<string, number>>;
  readonly kills: Readonly<Record<string, number>>;
  readonly seconds: number;
  /** Of the processes that were killed; for the search of a fault. */
  readonly logs: readonly string[];
}

/** Jobs that end between two kills, at most and of a day of so many jobs; on average half of it. */
const betweenKills = (jobs: number) => Math.min(80, Math.ceil(jobs / 5));
/** Time in which everything is returned after the last job. Leases without heartbeats end in a minute. */
const CLEAN_MS = 90_000;
const LOOK_MS = 500;

/** One day of all clients on one pool, while its processes are killed. */
export async function day({ jobs: count, seed, evening, note }: DayOptions): Promise<DayResult> {
  const [random, seededKills] = [seededRandom(seed), seededRandom(seed + 1)];
  const began = performance.now();
  const site = await DaySite.open();
  try {
    note(`everything runs, in ${site.zuul.folder}`);
    const user = ["--role", "user", "--label", "small", "--tenant", TENANT];
    const tokens = { rest: await site.token("rest", ...user), cli: await site.token("cli", ...user) };
    await until(
      () => site.github.set("small-set") !== undefined,
      CLEAN_MS,
      () => "no scale set",
    );
    const works = workOf(site, count, random, tokens);
    const faults: string[] = [];
    const begun: string[] = [];
    const begin = (job: string) => evening?.aborted !== true && begun.push(job) > 0;
    const over = new AbortController();
    const all = Promise.all(
      Object.entries(works).map(async ([client, { run }]) => {
        await run(begin).catch((error: Error) => faults.push(`${client}: ${error.message}`));
        note(`${client} is done`);
      }),
    ).finally(() => over.abort());
    const kills = { one: 0, two: 0, connect: 0 };
    const killing = kill(site, kills, () => seededKills.float() * betweenKills(count), over.signal, note);
    await Promise.race([all, killing]);
    await Promise.all([all, killing]);
    const tree = await connectZooKeeperTree({
      servers: `127.0.0.1:${site.yard.zookeeper!.plainPort}`,
      ...{ clock: systemClock, random: systemRandom, sessionTimeoutMs: 30_000 },
    });
    const left = async () => [...(await leftovers(tree)), ...(await site.leftovers())];
    await until(
      async () => (await left()).length === 0,
      CLEAN_MS,
      async () => (await left()).join(", "),
    ).catch((error: Error) => faults.push(`left: ${error.message}`));
    faults.push(...(await ledgerSums(tree)));
    await tree.close();
    const marks = site.ledger.marks();
    faults.push(...ledgerFaults(begun, marks));
    note("all is over; the records are judged");
    const verdict = judge(readZooKeeperLog(site.yard.zookeeper!.dataDir), site.cloud, marks);
    return {
      ...verdict,
      faults: [...faults, ...verdict.faults],
      jobs: Object.fromEntries(
        Object.entries(works).map(([client, { jobs }]) => [
          client,
          jobs.filter((job) => begun.includes(job)).length,
        ]),
      ),
      kills,
      seconds: Math.round((performance.now() - began) / 1_000),
      logs: [
        ...site.logs,
        ...["scheduler", "executor", "launcher"].map((name) => site.zuul.program(name).log),
      ],
    };
  } finally {
    await site.close();
  }
}

/** Kills one process after the other until it is aborted, each once before any is killed twice. `pause`: jobs that end before the next kill. */
async function kill(
  site: DaySite,
  kills: Record<Mortal, number>,
  pause: () => number,
  over: AbortSignal,
  note: (what: string) => void,
): Promise<void> {
  let left: Mortal[] = [];
  for (let next = pause(); !over.aborted; await sleep(LOOK_MS, undefined, { signal: over }).catch(() => {})) {
    const ended = site.ledger.marks().filter(({ what }) => what === "end").length;
    if (ended < next) continue;
    if (left.length === 0) left = [...MORTALS];
    const [name] = left.splice(Math.floor(pause()) % left.length, 1);
    note(`${ended} jobs have ended; kill -9 of ${name}`);
    kills[name!]++;
    await site.kill(name!);
    next = ended + pause();
  }
}

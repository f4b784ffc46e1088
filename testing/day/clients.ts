import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { type Client, connect } from "@nodeyard/client";
import { messageOf, type Random } from "@nodeyard/runtime";
import { Running } from "../../packages/nodeyard/cli/test/nodeyard.ts";
import { TmtTree } from "../connect/tmt.ts";
import { until } from "../login-yard.ts";
import { adopt } from "../zookeeper/children.ts";
import { PROJECTS, TAGS } from "../zuul/files.ts";
import { type DaySite, PIPELINES } from "./site.ts";

/** Jobs of Gitea in one push, and how many jobs of each other client wait or run at once. */
const AT_ONCE = { gitea: 24, github: 16, zuul: 4, tmt: 2, rest: 12, cli: 4 };
/** How often a script is repeated when it got no node. */
const SCRIPT_TRIES = 20;

/** What a client does in a day. */
export interface Work {
  /** Its jobs, by the names that they have in the ledger. */
  readonly jobs: readonly string[];
  /** Begins one after the other, and resolves when the client's own system says that they have succeeded. */
  run(begin: Begin): Promise<void>;
}

/** To be asked before each job begins; false: it is evening. */
export type Begin = (job: string) => boolean;

/** `count` jobs for all clients. Who gets how many: Zuul's are as many as two processors run in half an hour. */
export function workOf(
  site: DaySite,
  count: number,
  random: Random,
  tokens: { readonly rest: string; readonly cli: string },
) {
  const share = (part: number) => Math.max(2, Math.round(count * part));
  const seconds = () => Math.round(100 + random.float() * 1_200) / 1_000;
  const names = (client: string, many: number) => Array.from({ length: many }, (_, n) => `${client}-${n}`);
  const zuul = zuulWork(site, { check: share(0.04), gate: share(0.015), leased: share(0.025) });
  const others = {
    gitea: giteaWork(site, names("gitea", share(0.2)), seconds),
    github: githubWork(site, names("github", share(0.25)), seconds, random),
    tmt: tmtWork(site, names("tmt", share(0.012))),
    cli: cliWork(site, names("cli", share(0.06)), seconds, tokens.cli),
  };
  const sofar = [zuul, ...Object.values(others)].reduce((sum, { jobs }) => sum + jobs.length, 0);
  const rest = restWork(site, names("rest", Math.max(2, count - sofar)), seconds, tokens.rest);
  return { zuul, ...others, rest } satisfies Record<string, Work>;
}

/** The real Zuul: each job is one tag of a project in a pipeline. */
function zuulWork({ zuul }: DaySite, counts: Readonly<Record<(typeof PIPELINES)[number], number>>): Work {
  const most = PROJECTS.length * TAGS;
  const all = PIPELINES.flatMap((pipeline) =>
    Array.from({ length: Math.min(most, counts[pipeline]) }, (_, n) => ({
      pipeline,
      project: PROJECTS[n % PROJECTS.length]!,
      tag: `t${1 + Math.floor(n / PROJECTS.length)}`,
      at: n / counts[pipeline],
    })),
  ).sort((a, b) => a.at - b.at);
  const name = ({ pipeline, project, tag }: (typeof all)[number]) => `${pipeline}-${project}-${tag}`;
  return {
    jobs: all.map(name),
    run: (begin) =>
      inTurn(all, AT_ONCE.zuul, async (one) => {
        if (!begin(name(one))) return;
        await zuul.api.enqueue(one.project, one.tag, one.pipeline);
        let result: string | null | undefined;
        await until(async () => {
          result = (await zuul.api.ended(one.project, one.tag, one.pipeline))?.result;
          return result !== undefined;
        }, 3_000);
        if (result !== "SUCCESS") throw new Error(`Zuul says ${result} of ${name(one)}`);
      }),
  };
}

/** The real Gitea: a push after the other, each with many jobs. */
function giteaWork({ gitea, ledger }: DaySite, jobs: readonly string[], seconds: () => number): Work {
  return {
    jobs,
    async run(begin) {
      for (let at = 0; at < jobs.length; at += AT_ONCE.gitea) {
        const begun = jobs.slice(at, at + AT_ONCE.gitea).filter(begin);
        if (begun.length === 0) break;
        await gitea.push(begun.map((job) => ledger.line(job, seconds())));
        // A push cancels what is left of the one before.
        await until(
          async () => (await gitea.count("queued")) + (await gitea.count("in_progress")) === 0,
          1_000,
        );
      }
      const failed = (await gitea.count()) - (await gitea.count("success"));
      if (failed > 0) throw new Error(`${failed} jobs of Gitea have not succeeded`);
    },
  };
}

/** The double of GitHub, whose answers fail now and then. */
function githubWork(
  { github, ledger }: DaySite,
  jobs: readonly string[],
  seconds: () => number,
  random: Random,
): Work {
  return {
    jobs,
    run: (begin) =>
      inTurn(jobs, AT_ONCE.github, async (name) => {
        if (!begin(name)) return;
        const fault = Math.floor(random.float() * 40);
        if (fault < 4)
          github.faults[(["internal", "lostAcknowledgments", "expired", "duplicates"] as const)[fault]!]++;
        const job = github.set("small-set")!.add(ledger.line(name, seconds()));
        await until(() => job.state === "done");
        if (job.result !== "succeeded") throw new Error(`GitHub says ${job.result} of ${name}`);
      }),
  };
}

/** The real tmt, by the connector that stands for Artemis. */
function tmtWork({ zuul, key, guests, ledger }: DaySite, jobs: readonly string[]): Work {
  const provision = {
    how: "artemis",
    "api-url": guests,
    image: "Fedora-42",
    user: userInfo().username,
    port: zuul.machine.port,
    key,
    "provision-tick": 1,
  };
  return {
    jobs,
    run: (begin) =>
      inTurn(jobs, AT_ONCE.tmt, async (job) => {
        if (!begin(job)) return;
        const folder = join(zuul.folder, job);
        mkdirSync(folder);
        const { code, said } = await new TmtTree(folder).run(provision, ledger.line(job)).ended;
        rmSync(folder, { recursive: true, force: true });
        if (code !== 0) throw new Error(`tmt ended with ${code} in ${job}:\n${said.slice(-3_000)}`);
      }),
  };
}

/** Scripts that say `nodeyard run`; a third of them can wait. */
function cliWork(site: DaySite, jobs: readonly string[], seconds: () => number, token: string): Work {
  const env = { NODEYARD_URL: site.urls.two, NODEYARD_TOKEN: token };
  return {
    jobs,
    run: (begin) =>
      inTurn(jobs, AT_ONCE.cli, async (job) => {
        if (!begin(job)) return;
        await patiently(job, async () => {
          const priority = Number(job.slice(4)) % 3 === 0 ? "low" : "normal";
          const command = site.ledger.line(job, seconds()).split(" ");
          const running = new Running(
            ["run", "small", "--priority", priority, "--for", "1h", "--identity", site.key, "--", ...command],
            env,
          );
          const { code, err } = await running.ended;
          // 125: there was no node.
          if (code === 125) throw new NoNodeYet(err);
          if (code !== 0) throw new Error(`nodeyard run ended with ${code} in ${job}:\n${err}`);
        });
      }),
  };
}

/** Programs that lease by REST and log in themselves, half of them at each launcher; a third of them can wait. */
function restWork(site: DaySite, jobs: readonly string[], seconds: () => number, token: string): Work {
  const clients = [site.urls.one, site.urls.two].map((url) => connect(url, { token }));
  return {
    jobs,
    run: (begin) =>
      inTurn(jobs, AT_ONCE.rest, async (job) => {
        if (!begin(job)) return;
        const n = Number(job.slice(5));
        await patiently(job, (attempt) =>
          leased(clients[n % 2]!, `${job}-${attempt}`, n % 3 === 0 ? "300" : "200", (node) =>
            ssh(site, node, site.ledger.line(job, seconds())),
          ),
        );
      }),
  };
}

type Node = Awaited<ReturnType<Awaited<ReturnType<Client["lease"]>>["nodes"]>>[number];

/** Rejects with NoNodeYet as long as nothing was run. */
async function leased(
  pool: Client,
  key: string,
  priority: string,
  use: (node: Node) => Promise<void>,
): Promise<void> {
  const notYet = (error: unknown) => {
    throw new NoNodeYet(messageOf(error), { cause: error });
  };
  const wish = { labels: ["small"], for_seconds: 3_600, priority };
  const lease = await pool.lease(wish, { key }).catch(notYet);
  const [node] = await lease.nodes().catch(notYet);
  await use(node!);
  // It ends without heartbeats where the pool cannot be told now.
  await lease.end().catch(() => {});
}

async function ssh({ key }: DaySite, node: Node, command: string): Promise<void> {
  const folder = mkdtempSync("/tmp/nodeyard-day-");
  const target = `[${node.interface_ip}]:${node.connection_port}`;
  writeFileSync(join(folder, "hosts"), node.host_keys.map((one) => `${target} ${one}\n`).join(""));
  const options = [
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    `UserKnownHostsFile=${folder}/hosts`,
    "LogLevel=ERROR",
  ];
  const words = [
    "-i",
    key,
    "-p",
    String(node.connection_port),
    `${node.username}@${node.interface_ip}`,
    command,
  ];
  const child = spawn("ssh", [...options.flatMap((one) => ["-o", one]), ...words], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  await adopt(child);
  rmSync(folder, { recursive: true, force: true });
  if (child.exitCode !== 0) throw new Error(`ssh to node ${node.id} ended with ${child.exitCode}`);
}

class NoNodeYet extends Error {}

/** As scripts do that get no node: once more, a little later. */
async function patiently(job: string, work: (attempt: number) => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      if (!(error instanceof NoNodeYet) || attempt === SCRIPT_TRIES)
        throw new Error(`${job}: ${messageOf(error)}`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

/** Starts the next one when one has ended, so many at once. Rejects with the first error, when all that run have ended. */
async function inTurn<T>(all: readonly T[], atOnce: number, one: (item: T) => Promise<void>): Promise<void> {
  const left = [...all];
  const errors: unknown[] = [];
  const lane = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift())
      await one(item).catch((error: unknown) => errors.push(error));
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  if (errors.length > 0) throw new AggregateError(errors, errors.map(messageOf).join("\n"));
}

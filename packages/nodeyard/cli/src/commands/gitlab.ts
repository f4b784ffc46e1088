import { type Client, connect, type LeaseRow, type NodeAccess } from "@nodeyard/client";
import { HTTP_SOCKET, makeKnownHosts, runProgram } from "@nodeyard/process";
import { messageOf } from "@nodeyard/runtime";
import { VERSION } from "@nodeyard/telemetry/machine";
import type { Command } from "commander";
import { parseDuration } from "../arguments.ts";
import { clientOf } from "../backend/with-backend.ts";
import { CommandError, CommandFailed, Interrupted, NoNode, TimedOut, UsageError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { type Session, stateOf } from "../session.ts";
import { SSH_LIMITS, sshWords } from "../ssh-words.ts";

interface Options {
  readonly label?: string;
  readonly identity?: string;
  /** Milliseconds that a job may wait for its node. */
  readonly wait: number;
  readonly builds: string;
}

/** A day, the longest that there is: the four commands are processes of their own, and none lives between them. */
const HEARTBEAT_SECONDS = 86_400;
const HOUR_SECONDS = 3_600;

/**
 * `nodeyard gitlab config|prepare|run|cleanup`: the custom executor of a GitLab runner (docs.gitlab.com/runner/executors/custom). A job's
 * lease is found again by the job, so nothing is kept between the four processes.
 */
export function defineGitlab(command: Command, session: Session): void {
  stage(command, "config", "print the settings of a job, as the runner asks for them", (_, options) => {
    const { builds } = options;
    const driver = { name: "nodeyard", version: VERSION };
    printJson(session.io, {
      driver,
      builds_dir: `${builds}/builds`,
      cache_dir: `${builds}/cache`,
      shell: "bash",
    });
  });
  stage(command, "prepare", "lease the node of a job", (job, options) => prepare(session, job, options));
  stage(command, "run", "run a script of a job on its node", (job, options, [script, name]) => {
    if (script === undefined || name === undefined)
      throw new UsageError("give the path of the script and the name of its stage, as the runner does");
    return runStage(session, job, options, script, name);
  }).argument("[script...]");
  stage(command, "cleanup", "return the node of a job", (job) => cleanup(session, job));

  function stage(
    parent: Command,
    name: string,
    about: string,
    act: (job: Job, options: Options, words: readonly string[]) => unknown,
  ): Command {
    return parent
      .command(name)
      .description(about)
      .option("--label <label>", "label of the node; default: the job's `image`")
      .option("--identity <file>", "private key to log in with; default: what ssh finds")
      .option("--wait <time>", "for the node, at most", parseDuration, HOUR_SECONDS * 1_000)
      .option("--builds <dir>", "folder on the node for sources and caches", "/tmp/gitlab")
      .action(async (...given: unknown[]) => {
        const options = given.at(-2) as Options;
        const words = (given.length > 2 ? given[0] : []) as readonly string[];
        const job = jobOf(session.machine.env);
        try {
          await act(job, options, words);
        } catch (error) {
          if (error instanceof CommandFailed || error instanceof UsageError) throw error;
          session.io.err(`nodeyard: ${messageOf(error)}\n`);
          // The runner tries the job again for this code, and shows it as a failure of the system.
          throw new CommandFailed(job.systemFailure);
        }
      });
  }
}

/** What the runner says of the job, in its environment. */
interface Job {
  readonly id: string;
  readonly name: string | null;
  readonly url: string | null;
  readonly image: string | undefined;
  readonly seconds: number;
  readonly buildFailure: number;
  readonly systemFailure: number;
}

function jobOf(env: Session["machine"]["env"]): Job {
  const of = (name: string) => env[`CUSTOM_ENV_CI_${name}`] || undefined;
  const id = of("JOB_ID");
  if (id === undefined)
    throw new UsageError(
      "CUSTOM_ENV_CI_JOB_ID is not set: a GitLab runner starts this command, as its custom executor",
    );
  return {
    id,
    name: of("JOB_NAME") ?? null,
    url: of("JOB_URL") ?? null,
    image: of("JOB_IMAGE"),
    seconds: Number(of("JOB_TIMEOUT") ?? HOUR_SECONDS),
    buildFailure: Number(env.BUILD_FAILURE_EXIT_CODE ?? 1),
    systemFailure: Number(env.SYSTEM_FAILURE_EXIT_CODE ?? 2),
  };
}

/** The pool of NODEYARD_URL, else the one on this machine. */
async function poolOf(session: Session): Promise<Client> {
  return (await clientOf(session)) ?? connect(`${stateOf(session)}/${HTTP_SOCKET}`, session.machine);
}

async function prepare(session: Session, job: Job, { label = job.image, wait }: Options): Promise<void> {
  if (label === undefined)
    throw new CommandError(
      "cli.no_label",
      "the job has no `image:`, and the executor no --label: one of them names the nodes",
    );
  const { machine, io } = session;
  const late = new AbortController();
  const timer = machine.clock.setTimer(wait, () =>
    late.abort(new TimedOut(`there was no node of label ${label} within ${wait / 1_000} s`)),
  );
  const ignore = machine.onSignal((signal) => late.abort(new Interrupted(`ended by ${signal}`)));
  try {
    const wish = {
      labels: [label],
      for_seconds: Math.ceil(job.seconds + wait / 1_000),
      heartbeat_seconds: HEARTBEAT_SECONDS,
      job: { system: "gitlab", id: job.id, name: job.name, url: job.url },
    };
    io.err(`Waiting for a node of label ${label}\n`);
    // Released by the client when it fails, or is given up.
    const lease = await (await poolOf(session)).lease(wish, { key: keyOf(job), signal: late.signal });
    const [node] = await lease.nodes();
    io.err(`Using node ${node?.id} of ${node?.provider} (lease ${lease.id})\n`);
  } finally {
    timer.cancel();
    ignore();
  }
}

async function runStage(
  session: Session,
  job: Job,
  { identity }: Options,
  script: string,
  name: string,
): Promise<void> {
  const pool = await poolOf(session);
  const lease = await leaseOf(pool, job);
  const [node] =
    lease === undefined ? [] : (await pool.call("list_lease_nodes", { path: { id: lease.id } })).items;
  if (node === undefined)
    throw new NoNode(`job ${job.id} has no node (any more): its lease was never made, or has ended`);
  const code = await runScript(node, identity, script);
  if (code === 0) return;
  // 255 is ssh's own.
  if (code !== 255) throw new CommandFailed(job.buildFailure);
  throw new CommandError(
    "cli.no_connection",
    `the connection to node ${node.id} failed or was lost in stage ${name}`,
  );
}

/** Runs a script by the node's bash. Resolves with its exit code. */
async function runScript(node: NodeAccess, identity: string | undefined, script: string): Promise<number> {
  const login = sshWords(node);
  if (login === undefined) throw new CommandError("cli.no_ssh", `node ${node.id} is not reached by SSH`);
  const knownHosts = makeKnownHosts(node);
  const key = identity === undefined ? [] : ["-i", identity, "-o", "IdentitiesOnly=yes"];
  const trust = ["-o", `UserKnownHostsFile=${knownHosts.file}`, "-o", "StrictHostKeyChecking=yes"];
  try {
    const ssh = ["-o", "BatchMode=yes", ...key, ...trust, ...SSH_LIMITS, ...login, "bash"];
    return await runProgram("sh", ["-c", 'exec ssh "$@" <"$0"', script, ...ssh]);
  } finally {
    knownHosts.remove();
  }
}

async function cleanup(session: Session, job: Job): Promise<void> {
  const pool = await poolOf(session);
  const lease = await leaseOf(pool, job);
  // A job without a node is cleaned up, too.
  if (lease !== undefined) await pool.call("release_lease", { path: { id: lease.id }, body: {} });
}

/** By the job; one that has ended does not count. */
async function leaseOf(pool: Client, { id, url }: Job): Promise<Pick<LeaseRow, "id"> | undefined> {
  for await (const lease of pool.list("list_leases", { "job.system": "gitlab", "job.id": id }))
    if (lease.job?.url === url && lease.state !== "released") return lease;
  return undefined;
}

/** Of all jobs of all servers. */
function keyOf({ id, url }: Job): string {
  return `gitlab:${id}:${url ?? ""}`.slice(0, 255);
}

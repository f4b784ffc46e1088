import { type Client, connect, type LeaseRow, type NodeAccess } from "@nodeyard/client";
import { nodeShell, openSsh } from "@nodeyard/connect";
import { HTTP_SOCKET, readText, writePrivate } from "@nodeyard/process";
import { deadline, defined, messageOf } from "@nodeyard/runtime";
import { VERSION } from "@nodeyard/telemetry/machine";
import type { Command } from "commander";
import { z } from "zod";
import { parseDuration } from "../arguments.ts";
import { clientOf } from "../backend/with-backend.ts";
import { CommandError, CommandFailed, Interrupted, NoNode, TimedOut, UsageError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { logOf } from "../log.ts";
import { type Session, stateOf } from "../session.ts";
import { endServices, type Service, servicesOf, startServices } from "./gitlab-services.ts";

interface Options {
  readonly label?: string;
  readonly identity?: string;
  /** Milliseconds that a job may wait for its node. */
  readonly wait: number;
  readonly builds: string;
}

const HOUR_SECONDS = 3_600;
/** Sent while a stage runs. The stages are processes of their own, and none lives between them, so it outlasts any pause of the runner. */
const HEARTBEAT_SECONDS = HOUR_SECONDS;
/** For the clean-up of a node, milliseconds. */
const CLEAN_MS = 30_000;
/** The lines that run a stage by the node's bash, in a session that the clean-up finds: one that still has processes is kept in the list. */
const STAGE = `
d=$HOME/.nodeyard/$1
umask 077
for tool in setsid pgrep pkill; do
  command -v $tool >/dev/null || { echo "$tool is missing (util-linux, procps)" >&2; exit 255; }
done
mkdir -p "$d" && cat /proc/sys/kernel/random/boot_id >"$d/boot" || exit 255
umask 022
setsid -w sh -c 'echo $$ >>"$0/pid"; exec bash' "$d"
code=$?
for session in $(cat "$d/pid"); do
  if pgrep -s "$session" >/dev/null; then echo "$session"; fi
done >"$d/pid.new"
mv "$d/pid.new" "$d/pid"
# ssh has 255 for itself.
[ $code -ne 255 ] || code=254
exit $code
`;

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
  stage(command, "cleanup", "return the node of a job", (job, options) => cleanup(session, job, options));

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
        const { env } = session.machine;
        try {
          await act(jobOf(env), options, words);
        } catch (error) {
          if (error instanceof CommandFailed || error instanceof UsageError) throw error;
          session.io.err(`nodeyard: ${messageOf(error)}\n`);
          // The runner tries the job again for this code, and shows it as a failure of the system.
          throw new CommandFailed(Number(env.SYSTEM_FAILURE_EXIT_CODE ?? 2));
        }
      });
  }
}

/** What the runner says of the job. */
interface Job extends Identity {
  readonly image: string | undefined;
  readonly seconds: number;
  readonly services: readonly Service[];
  readonly buildFailure: number;
  /** As the runner sets it once the job's scripts have ended, whatever they were; undefined or `running` before. */
  readonly status: string | undefined;
}

/** The facts by which a job finds its lease. */
interface Identity {
  readonly id: string;
  readonly name: string | null;
  readonly url: string | null;
  /** Server and path; undefined: only the job's own variables say it. */
  readonly project?: string;
}

/** The answer of the GitLab server with which the runner got the job. */
const responseSchema = z.object({
  id: z.int(),
  job_info: z.object({ name: z.string() }),
  git_info: z.object({ repo_url: z.url({ protocol: /^https?$/ }) }),
});

function jobOf(env: Session["machine"]["env"]): Job {
  const of = (name: string) => env[`CUSTOM_ENV_CI_${name}`] || undefined;
  return {
    ...identityOf(env.JOB_RESPONSE_FILE, of),
    image: of("JOB_IMAGE"),
    seconds: Number(of("JOB_TIMEOUT") ?? HOUR_SECONDS),
    services: servicesOf(of("JOB_SERVICES")),
    buildFailure: Number(env.BUILD_FAILURE_EXIT_CODE ?? 1),
    status: of("JOB_STATUS"),
  };
}

/**
 * By the server's answer: a project's `variables:` may overwrite CUSTOM_ENV_CI_*, and the job would get the node of another one. Only a
 * runner older than 14.1 sets no JOB_RESPONSE_FILE; an empty one means that the answer was not written. Throws for one that is no answer.
 */
function identityOf(file: string | undefined, of: (name: string) => string | undefined): Identity {
  if (file !== undefined) {
    const { id, job_info, git_info } = responseOf(file);
    // The address of the repository has the job's token as its password.
    const { origin, host, pathname } = new URL(git_info.repo_url);
    const path = pathname.replace(/\.git$/, "");
    const url = `${origin}${path}/-/jobs/${id}`;
    return { id: String(id), name: job_info.name, url, project: host + path };
  }
  const id = of("JOB_ID");
  if (id === undefined)
    throw new UsageError(
      "JOB_RESPONSE_FILE and CUSTOM_ENV_CI_JOB_ID are not set: a GitLab runner starts this command, as its custom executor",
    );
  return { id, name: of("JOB_NAME") ?? null, url: of("JOB_URL") ?? null };
}

function responseOf(file: string): z.output<typeof responseSchema> {
  const text = readText(file, "JOB_RESPONSE_FILE");
  try {
    return responseSchema.parse(JSON.parse(text));
  } catch (cause) {
    // Without what it has in it: the token of the job.
    throw new CommandError("cli.no_job", `JOB_RESPONSE_FILE ${file} is no answer of a GitLab server`, {
      cause,
    });
  }
}

/** The pool of NODEYARD_URL, else the one on this machine. */
async function poolOf(session: Session): Promise<Client> {
  return (await clientOf(session)) ?? connect(`${stateOf(session)}/${HTTP_SOCKET}`, session.machine);
}

async function prepare(
  session: Session,
  job: Job,
  { label = job.image, wait, identity }: Options,
): Promise<void> {
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
      ...defined({ project: job.project }),
    };
    io.err(`Waiting for a node of label ${label}\n`);
    // Released by the client when it fails, or is given up.
    const lease = await (await poolOf(session)).lease(wish, { key: keyOf(job), signal: late.signal });
    const [node] = await lease.nodes();
    if (node === undefined) throw new NoNode(`lease ${lease.id} has no node any more`);
    io.err(`Using node ${node.id} of ${node.provider} (lease ${lease.id})\n`);
    const signal = AbortSignal.any([lease.signal, late.signal]);
    await startServices(openSsh(identity), node, nameOf(job), job.services, signal);
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
  const { machine } = session;
  const pool = await poolOf(session);
  const row = await leaseOf(pool, job);
  const lease = row && (await pool.resume(row.id));
  const [node] = (await lease?.nodes()) ?? [];
  if (lease === undefined || node === undefined)
    throw new NoNode(`job ${job.id} has no node (any more): its lease was never made, or has ended`);
  const stop = new AbortController();
  const ignore = machine.onSignal((signal) => stop.abort(new Interrupted(`ended by ${signal}`)));
  const signal = AbortSignal.any([lease.signal, stop.signal]);
  const { code } = await openSsh(identity)(node, {
    script: STAGE,
    words: [nameOf(job)],
    stdin: script,
    signal,
  }).finally(() => {
    ignore();
    lease.leave();
  });
  if (code === 0) return;
  // 255 is ssh's own.
  if (code === 255)
    throw new CommandError(
      "cli.no_connection",
      `the connection to node ${node.id} failed or was lost in stage ${name}`,
    );
  // For `allow_failure: exit_codes`.
  const { BUILD_EXIT_CODE_FILE: file } = machine.env;
  if (file) writePrivate(file, String(code));
  throw new CommandFailed(job.buildFailure);
}

/** Also of a job without a node, and of one that was cancelled in the middle of a stage. */
async function cleanup(session: Session, job: Job, { identity }: Options): Promise<void> {
  const pool = await poolOf(session);
  const lease = await leaseOf(pool, job);
  if (lease === undefined) return;
  const path = { id: lease.id };
  const [node] = (await pool.call("list_lease_nodes", { path })).items;
  const why = node && (await cleanNode(session, node, job, identity).then(() => undefined, messageOf));
  if (why !== undefined) session.io.err(`nodeyard: ${why}; the node is not used again\n`);
  const body = job.status === "success" ? { commit: true } : {};
  await pool.call("release_lease", { path, body: why === undefined ? body : { verdict: "dirty", why } });
}

async function cleanNode(session: Session, node: NodeAccess, job: Job, identity: string | undefined) {
  const { clock, random } = session.machine;
  const ssh = openSsh(identity);
  using limit = deadline(clock, CLEAN_MS, () => new TimedOut(`cannot clean node ${node.id} in time`));
  await nodeShell(ssh, { clock, random, log: logOf(session) }).stop(node, nameOf(job), limit.signal);
  if (job.services.length > 0) await endServices(ssh, node, nameOf(job), limit.signal);
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

/** On its node, which has one job at a time of this server. */
function nameOf({ id }: Job): string {
  return `gitlab-${id}`;
}

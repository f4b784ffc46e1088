import { type Clock, deadline, messageOf } from "@nodeyard/driver";
import { CONTROL_USER, SliverClient, sshTransport, unixTransport } from "@nodeyard/sliver-protocol";
import { type Enrolled, readEnrolled } from "./enrolment.ts";
import { SliverHostError } from "./errors.ts";
import type { Bundle, Remote } from "./remote.ts";

/** Where a sliver manager listens for whoever looks after its machine (packages/sliver/src/enrol/parts.ts). */
const CONTROL_SOCKET = "/run/nodeyard-sliver/control/api.sock";
/** Where a sliver host keeps the programs that it runs (packages/sliver/src/enrol/parts.ts). */
const CURRENT = "/usr/lib/nodeyard-sliverd/current";
/** What an enrolment makes first, or takes away last. */
const TRACES = ["/etc/nodeyard-sliver", "/usr/lib/nodeyard-sliverd", "/var/lib/nodeyard-sliverd"] as const;
/** For programs that were copied to be removed, whatever ended the order they were for; milliseconds. */
const CLEAN_UP_MS = 15_000;
const NODE_FLAGS = "--disable-warning=ExperimentalWarning";

/** What `install` needs to make a machine a sliver host. */
export interface InstallOrder {
  readonly remote: Remote;
  readonly bundle: Bundle;
  /** For `sliver-enrol`. */
  readonly settings: string;
  /** Private key that is to reach the control account afterwards. */
  readonly controlKey: string;
  readonly dryRun: boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Makes a machine a sliver host, and asks its manager over the control account in the end, so that what a launcher needs has been seen
 * to work. With `dryRun` programs are copied to look, and taken away again. Throws SliverHostError.
 */
export async function installSliverd(order: InstallOrder): Promise<Enrolled> {
  const { remote, bundle, signal } = order;
  const host = await probe(remote, signal);
  checkPlatform(remote, host, bundle);
  const has = host.digest === bundle.digest && host.runtimeSize === bundle.runtimeSize;
  const folder = has ? CURRENT : await copy(remote, bundle, signal);
  try {
    const command = `${host.sudo}${folder}/node ${NODE_FLAGS} ${folder}/sliver-enrol.mjs ${order.dryRun ? "plan" : "apply"}`;
    const enrolled = readEnrolled(await remote.run(command, { signal, input: order.settings }));
    if (!order.dryRun) await reach(order, enrolled);
    return enrolled;
  } finally {
    if (!has) await removeCopy(order, folder);
  }
}

/** What `uninstall` needs to make a sliver host a plain machine again. */
export interface UninstallOrder {
  readonly remote: Remote;
  /** Asked for where the machine's own programs do not run: its enrolment was cut off, or they are damaged. */
  readonly bundle: () => Bundle;
  readonly dryRun: boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Takes everything back, of half an enrolment too. A machine that has nothing of one stays as it is. Throws SliverHostError. */
export async function uninstallSliverd(order: UninstallOrder): Promise<Enrolled> {
  const { remote, dryRun, signal } = order;
  const host = await probe(remote, signal);
  if (!host.traces) return { node: "", changes: [], missingPackages: [], notes: ["it is not a sliver host"] };
  const runs = host.digest !== "" && (await answers(remote, signal));
  const folder = runs ? CURRENT : await copyFitting(remote, host, order.bundle(), signal);
  try {
    const command = `${host.sudo}${folder}/node ${NODE_FLAGS} ${folder}/sliver-enrol.mjs withdraw${dryRun ? " --dry-run" : ""}`;
    return readEnrolled(await remote.run(command, { signal }));
  } finally {
    if (!runs) await removeCopy(order, folder);
  }
}

/** Whether the machine's own programs run. */
async function answers(remote: Remote, signal: AbortSignal): Promise<boolean> {
  const line = `${CURRENT}/node ${NODE_FLAGS} ${CURRENT}/sliver-enrol.mjs --version 2>/dev/null || true`;
  return (await remote.run(line, { signal })).startsWith("sliver-enrol ");
}

function copyFitting(remote: Remote, host: Probed, bundle: Bundle, signal: AbortSignal): Promise<string> {
  checkPlatform(remote, host, bundle);
  return copy(remote, bundle, signal);
}

function checkPlatform(remote: Remote, host: Probed, bundle: Bundle): void {
  if (host.platform !== bundle.platform)
    throw new SliverHostError(
      `${remote.name} is ${host.platform}, and the runtime that would be copied is for ${bundle.platform}; give one for it with --node-runtime`,
    );
}

interface Probed {
  readonly platform: string;
  readonly sudo: string;
  /** Of the programs that are there; empty: none are. */
  readonly digest: string;
  readonly runtimeSize: number;
  /** Something of an enrolment is there, whole or not. */
  readonly traces: boolean;
}

async function probe(remote: Remote, signal: AbortSignal): Promise<Probed> {
  const traces = TRACES.map((path) => ` || [ -e ${path} ]`).join("");
  const lines = [
    "uname -sm",
    "id -u",
    `sha256sum ${CURRENT}/bundle.json 2>/dev/null || echo -`,
    `stat -L -c %s ${CURRENT}/node 2>/dev/null || echo 0`,
    `if grep -q '^${CONTROL_USER}:' /etc/passwd${traces}; then echo some; else echo none; fi`,
  ];
  const [platform = "", uid = "", digest = "", size = "", found = ""] = (
    await remote.run(lines.join("; "), { signal })
  )
    .trim()
    .split("\n");
  if (!/^\d+$/.test(uid)) throw new SliverHostError(`${remote.name} does not answer like a Unix shell`);
  const sudo = uid === "0" ? "" : "sudo -n ";
  if (sudo !== "")
    await remote.run("sudo -n true", { signal }).catch((cause) => {
      throw new SliverHostError(
        `${remote.name}: this needs root: log in as root, or allow sudo without a password (${messageOf(cause)})`,
        {
          cause,
        },
      );
    });
  return {
    platform,
    sudo,
    digest: /^[0-9a-f]{64}/.exec(digest)?.[0] ?? "",
    runtimeSize: Number(size),
    traces: found === "some",
  };
}

/** Into a folder that only the login may enter. */
async function copy(remote: Remote, bundle: Bundle, signal: AbortSignal): Promise<string> {
  const line = 'd=$(mktemp -d /var/tmp/nodeyard-sliverd.XXXXXXXX) && tar -xz -C "$d" && printf "%s\\n" "$d"';
  const folder = (await remote.run(line, { signal, input: bundle.open() })).trim();
  if (!/^\/var\/tmp\/nodeyard-sliverd\.[A-Za-z0-9]{8}$/.test(folder))
    throw new SliverHostError(
      `${remote.name} made no folder for the programs, but said ${JSON.stringify(folder)}`,
    );
  return folder;
}

/** As a launcher does; on this machine by the socket. Another machine's keys come over the operator's session, which knew whom it spoke to. */
async function reach({ remote, controlKey, signal }: InstallOrder, { node, notes }: Enrolled): Promise<void> {
  const client = await clientOf(remote, controlKey, signal);
  const status = await client.status(signal).catch((cause) => {
    throw new SliverHostError(
      [
        `sliverd runs on ${remote.name}, and its control account cannot be reached: ${messageOf(cause)}`,
        ...notes,
      ].join("; "),
      { cause },
    );
  });
  if (status.node !== node)
    throw new SliverHostError(`${remote.name} answers as node ${status.node}, where ${node} was installed`);
}

async function clientOf(remote: Remote, controlKey: string, signal: AbortSignal): Promise<SliverClient> {
  if (remote.target === undefined) return new SliverClient(unixTransport(CONTROL_SOCKET));
  const keys = (await remote.run("cat /etc/ssh/ssh_host_*_key.pub", { signal })).trim().split("\n");
  const { host, port } = await remote.target(signal);
  const known = keys.filter((key) => /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp\d+) /.test(key));
  return new SliverClient(sshTransport({ host, port, identityFile: controlKey, hostKeys: known }));
}

/** As far as the machine still answers. With a limit of its own: the order may have ended because its time was over. */
async function removeCopy(
  { remote, clock }: { readonly remote: Remote; readonly clock: Clock },
  folder: string,
) {
  const late = () => new SliverHostError(`${remote.name} stopped answering`);
  const limit = deadline(clock, CLEAN_UP_MS, late);
  try {
    await remote.run(`rm -rf ${folder}`, { signal: limit.signal });
  } catch {
    // It is 120 MB in a folder for what may be removed, and the caller gets the error of the order itself.
  } finally {
    limit.cancel();
  }
}

import { messageOf } from "@nodeyard/runtime";
import { CONTROL_USER, SliverClient, sshTransport, unixTransport } from "@nodeyard/sliver-protocol";
import { type Enrolled, readEnrolled } from "./enrolment.ts";
import { SliverHostError } from "./errors.ts";
import type { Bundle, Remote } from "./remote.ts";

/** Socket of a sliver manager for its administrators (packages/slivers/manager/src/enrol/parts.ts). */
const CONTROL_SOCKET = "/run/nodeyard-sliver/control/api.sock";
/** Folder of the programs that a sliver host runs (packages/slivers/manager/src/enrol/parts.ts). */
const CURRENT = "/usr/lib/nodeyard-sliverd/current";
/** Folders that an enrolment makes first and an uninstallation removes last. */
const TRACES = ["/etc/nodeyard-sliver", "/usr/lib/nodeyard-sliverd", "/var/lib/nodeyard-sliverd"] as const;
/** Without it Node warns of its experimental parts, in an output that operators read. */
const NODE_FLAGS = "--disable-warning=ExperimentalWarning";

/** Precedes a line that must come to its end: the shell then outlives what ends its programs. */
const TO_ITS_END = "trap : HUP INT TERM";

/** Input of `installSliverd`. */
export interface InstallOrder {
  readonly remote: Remote;
  readonly bundle: Bundle;
  /** Input of `sliver-enrol`. */
  readonly settings: string;
  /** Private key with which the launcher will log in to the control account. */
  readonly controlKey: string;
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/**
 * Makes a machine a sliver host. At the end it calls the manager through the control account, which is what launchers will do. With
 * `dryRun` it copies the programs, reports what they would change, and removes them. A machine that has the same programs gets no copy.
 * Throws SliverHostError.
 */
export async function installSliverd(order: InstallOrder): Promise<Enrolled> {
  const { remote, bundle, signal } = order;
  const host = await probe(remote, signal);
  checkPlatform(remote, host, bundle);
  const has = host.digest === bundle.digest && host.runtimeSize === bundle.runtimeSize;
  const folder = has ? CURRENT : await copy(remote, bundle, signal);
  const line = enrolLine(host, folder, order.dryRun ? "plan" : "apply");
  const enrolled = readEnrolled(await remote.run(line, { signal, input: order.settings }));
  if (!order.dryRun) await reach(order, enrolled);
  return enrolled;
}

/** Input of `uninstallSliverd`. */
export interface UninstallOrder {
  readonly remote: Remote;
  /** Used when the machine's own programs do not run, because its enrolment was interrupted or they are damaged. */
  readonly bundle: () => Bundle;
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/** Removes sliverd, also after an interrupted enrolment. Does nothing on a machine without traces of one. Throws SliverHostError. */
export async function uninstallSliverd(order: UninstallOrder): Promise<Enrolled> {
  const { remote, dryRun, signal } = order;
  const host = await probe(remote, signal);
  if (!host.traces) return { node: "", changes: [], missingPackages: [], notes: ["it is not a sliver host"] };
  const runs = host.digest !== "" && (await answers(remote, signal));
  const folder = runs ? CURRENT : await copyFitting(remote, host, order.bundle(), signal);
  const line = enrolLine(host, folder, dryRun ? "withdraw --dry-run" : "withdraw");
  return readEnrolled(await remote.run(line, { signal }));
}

/**
 * The command line for `sliver-enrol` of `folder`. A copy is removed by the same session, whose end does not depend on this side: not on
 * a time limit, nor on a further login, which a machine refuses for a moment when its sshd has just been reloaded.
 */
function enrolLine(host: Probed, folder: string, words: string): string {
  const line = `${host.sudo}${folder}/node ${NODE_FLAGS} ${folder}/sliver-enrol.mjs ${words}`;
  return folder === CURRENT ? line : `${TO_ITS_END}; ${line}; status=$?; rm -rf ${folder}; exit $status`;
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

/** Throws before a runtime is copied that could not run there. */
function checkPlatform(remote: Remote, host: Probed, bundle: Bundle): void {
  if (host.platform !== bundle.platform)
    throw new SliverHostError(
      `${remote.name} is ${host.platform}, and the runtime that would be copied is for ${bundle.platform}; give one for it with --node-runtime`,
    );
}

/** What one command line finds out about a machine before anything is changed. */
interface Probed {
  readonly platform: string;
  /** What precedes commands; empty for root. */
  readonly sudo: string;
  /** Digest of the programs on the machine; empty when there are none. */
  readonly digest: string;
  readonly runtimeSize: number;
  /** The machine has traces of an enrolment, complete or not. */
  readonly traces: boolean;
}

/** Asks the machine. Throws SliverHostError when it does not answer like a Unix shell, or when the login cannot become root. */
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

/** Copies the programs to a folder that only the login can enter. */
async function copy(remote: Remote, bundle: Bundle, signal: AbortSignal): Promise<string> {
  const line =
    'd=$(mktemp -d /var/tmp/nodeyard-sliverd.XXXXXXXX) && { tar -xz -C "$d" || { rm -rf "$d"; false; }; } && printf "%s\\n" "$d"';
  const folder = (await remote.run(`${TO_ITS_END}; ${line}`, { signal, input: bundle.open() })).trim();
  if (!/^\/var\/tmp\/nodeyard-sliverd\.[A-Za-z0-9]{8}$/.test(folder))
    throw new SliverHostError(
      `${remote.name} made no folder for the programs, but said ${JSON.stringify(folder)}`,
    );
  return folder;
}

/**
 * Connects as a launcher does; on this machine by the socket. The host keys come over the operator's ssh session, which has verified the
 * machine.
 */
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

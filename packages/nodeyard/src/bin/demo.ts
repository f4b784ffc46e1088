import { mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { messageOf } from "@nodeyard/runtime";
import {
  GRACE_MS,
  type LocalSshd,
  type Machine,
  makeKey,
  makeStateFolder,
  missingForSshd,
  runOverSsh,
  startLocalSshd,
  startUp,
  systemMachine,
  type Up,
  untilStopped,
} from "../process/index.ts";
import { createLog } from "../telemetry/index.ts";
import { Commands, type Granted } from "./demo/commands.ts";
import { writeConfiguration } from "./demo/configuration.ts";
import { untilReturned } from "./demo/returned.ts";

/**
 * `npm start`: Nodeyard on a tree of its own with fake nodes and, where sshd is installed, two static hosts that are real SSH
 * servers on loopback. Asks for nodes, uses one, and stays up; with --once gives them back and ends.
 */
const once = process.argv.includes("--once");
const machine = systemMachine();
const say = (text: string) => void process.stdout.write(text);
// Relative, because the path of the socket in it must be short.
const stateFolder = once ? mkdtempSync(join(tmpdir(), "nodeyard-demo-")) : ".nodeyard";
const logFile = join(stateFolder, "nodeyard.log");
const sshds: LocalSshd[] = [];
let up: Up | undefined;

process.exitCode = await demo().catch((error) => {
  process.stderr.write(`nodeyard: the demo failed: ${messageOf(error)}${once ? "" : ` (log: ${logFile})`}\n`);
  return 1;
});
await end();

async function demo(): Promise<number> {
  makeStateFolder(stateFolder);
  const key = await startHosts();
  const config = join(stateFolder, "nodepool.yaml");
  writeConfiguration(config, {
    hosts: sshds,
    user: machine.user,
    cloudFile: resolve(stateFolder, "fake-cloud.journal"),
  });
  const log = createLog({ level: "info", format: "text", descriptor: openSync(logFile, "a", 0o600) });
  up = await startUp({ stateFolder, files: { path: config } }, machine, log);
  say(`Nodeyard is up on ${stateFolder}: an embedded tree, the launcher, ${config}\n`);

  const commands = new Commands(machine, stateFolder, say);
  await commands.releaseLeftovers();
  const granted = [await commands.request(["fake-small", "fake-large"])];
  if (key !== undefined) {
    const hosts = await commands.request(["static-host"]);
    granted.push(hosts);
    await greet(hosts, key);
  }
  await commands.show("list");
  if (!once) return stay(machine, key);

  await commands.release(granted.map(({ lease }) => lease));
  const ids = granted.flatMap(({ nodes }) => nodes.map(({ id }) => id));
  await untilReturned(stateFolder, machine, ids);
  say(`all ${ids.length} nodes are returned\n`);
  return 0;

  async function stay(of: Machine, sshKey: string | undefined): Promise<number> {
    say(whatNext(sshKey));
    return untilStopped(of, log, async () => {
      say("\nreturning the nodes and stopping\n");
      await commands.release(granted.map(({ lease }) => lease)).catch(() => {});
      await up?.close(GRACE_MS);
      up = undefined;
    });
  }
}

/** Two hosts to hand out, and the key to log in with; none where the tools are missing. */
async function startHosts(): Promise<string | undefined> {
  const missing = missingForSshd(machine.env.PATH ?? "");
  if (missing !== undefined) {
    say(`No static hosts in this demo, because ${missing} is not installed (Debian: openssh-server).\n`);
    return undefined;
  }
  const key = await makeKey(stateFolder, "ssh_key");
  for (const name of ["host-1", "host-2"]) sshds.push(await startLocalSshd(resolve(stateFolder, name), key));
  say(`Two hosts to hand out: ${sshds.map(({ host, port }) => `sshd on ${host}:${port}`).join(", ")}\n`);
  return key;
}

/** Uses a node as its owner would: no other host than the one whose keys Nodeyard published will do. */
async function greet({ nodes }: Granted, key: string): Promise<void> {
  const node = nodes[0]!;
  const target = {
    host: node.interface_ip,
    port: node.connection_port,
    username: node.username,
    hostKeys: node.host_keys,
  };
  const command = 'set -- $SSH_CONNECTION; echo "hello from $(uname -n), port $4"';
  say(`\n$ ssh -p ${target.port} ${target.username}@${target.host} '${command}'\n`);
  say(`${await runOverSsh(target, key, join(stateFolder, "known_hosts"), command)}\n`);
}

function whatNext(key: string | undefined): string {
  const nodeyard = `npx nodeyard --state ${stateFolder}`;
  return `
Nodeyard stays up until Ctrl-C. In another terminal, in this folder:

  ${nodeyard} list                           what there is
  ${nodeyard} list --leases                  who has it
  ${nodeyard} request fake-small:3 --wait    more of it; give back with "release LEASE"
  ${nodeyard} explain ID                     what a request, lease or node waits for, and what happened
  ${nodeyard} hold NODE                      keep one to look at
${key === undefined ? "" : `  ssh -i ${stateFolder}/ssh_key -p ${sshds[0]?.port} ${machine.user}@127.0.0.1     log in to a static host\n`}
Configuration: ${stateFolder}/nodepool.yaml (edit it: changes are taken up within a second). Log: ${stateFolder}/nodeyard.log
`;
}

async function end(): Promise<void> {
  await up?.close(GRACE_MS).catch(() => {});
  await Promise.all(sshds.map((sshd) => sshd.stop()));
  if (once) rmSync(stateFolder, { recursive: true, force: true });
}

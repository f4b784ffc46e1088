import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { makeKey } from "@nodeyard/process";
import { messageOf } from "@nodeyard/runtime";
import type { Machine } from "@nodeyard/telemetry/machine";
import type { Granted } from "./commands.ts";
import { type LocalSlivers, startLocalSlivers } from "./local-slivers.ts";
import { probeSlivers } from "./probe-slivers.ts";
import { changes } from "./sliver-plan.ts";
import { type LocalSshd, missingForSshd, runOverSsh, startLocalSshd } from "./sshd.ts";

/** Nodes that can be logged in to, of the kind that this machine can have. */
export interface RealNodes {
  /** Undefined: there are none. */
  readonly label: "sliver" | "static-host" | undefined;
  /** Path of the private key that may log in. */
  readonly key: string | undefined;
  readonly authorizedKey: string | undefined;
  readonly hosts: readonly LocalSshd[];
  readonly slivers: LocalSlivers | undefined;
  /** Leaves this machine as it was. */
  stop(): Promise<void>;
}

export interface Wish {
  readonly stateFolder: string;
  readonly machine: Machine;
  readonly wantsSlivers: boolean;
  readonly say: (text: string) => void;
}

/** Slivers of this machine if it can make them, else two hosts that are SSH servers on loopback, else none. */
export async function startRealNodes(wish: Wish): Promise<RealNodes> {
  const { stateFolder, machine, say } = wish;
  const slivers = wish.wantsSlivers ? await trySlivers(wish) : undefined;
  const missing = missingForSshd(machine.env.PATH ?? "");
  if (missing !== undefined) {
    say(`No static hosts in this demo, because ${missing} is not installed (Debian: openssh-server).\n`);
    return {
      label: undefined,
      key: undefined,
      authorizedKey: undefined,
      hosts: [],
      slivers,
      stop: async () => {},
    };
  }
  const key = await makeKey(stateFolder, "ssh_key");
  const authorizedKey = readFileSync(`${key}.pub`, "utf8").trim();
  if (slivers !== undefined)
    return { label: "sliver", key, authorizedKey, hosts: [], slivers, stop: () => slivers.stop() };
  const hosts: LocalSshd[] = [];
  for (const name of ["host-1", "host-2"]) hosts.push(await startLocalSshd(resolve(stateFolder, name), key));
  say(`Two hosts to hand out: ${hosts.map(({ host, port }) => `sshd on ${host}:${port}`).join(", ")}\n`);
  const stop = async () => {
    await Promise.all(hosts.map((host) => host.stop()));
  };
  return { label: "static-host", key, authorizedKey, hosts, slivers, stop };
}

async function trySlivers({ machine, say }: Wish): Promise<LocalSlivers | undefined> {
  const facts = await probeSlivers(machine);
  if ("why" in facts) {
    say(`Static hosts instead of slivers of this machine: ${facts.why}.\n`);
    return undefined;
  }
  const lines = changes(facts).map((line) => `  ${line}\n`);
  say(
    `Slivers of this machine are handed out (--no-slivers turns this off). Until it stops, this machine has:\n${lines.join("")}Nothing is installed, and everything else stays as it is.\n`,
  );
  try {
    const slivers = await startLocalSlivers(facts, machine);
    const kind =
      slivers.backEnd === "container"
        ? `containers of ${facts.image}`
        : "accounts that see this host's programs, since no image is in /var/cache/nodeyard-images";
    say(`A test sliver was made and removed. Slivers here are ${kind}.\n`);
    return slivers;
  } catch (error) {
    say(`Static hosts instead: slivers cannot be made here (${messageOf(error)}).\n`);
    return undefined;
  }
}

/** Uses a node as its owner would: only a host with the keys that Nodeyard published is accepted. */
export async function greet(
  { nodes }: Granted,
  { key, label }: RealNodes,
  { stateFolder, say }: Wish,
): Promise<void> {
  const node = nodes[0]!;
  const target = {
    host: node.interface_ip,
    port: node.connection_port,
    username: node.username,
    hostKeys: node.host_keys,
  };
  const run = async (command: string, ended?: string) => {
    say(`\n$ ssh -p ${target.port} ${target.username}@${target.host} '${command}'\n`);
    const output = runOverSsh(target, key!, join(stateFolder, "known_hosts"), command);
    say(
      `${await output.catch((error: Error) => (ended !== undefined && wasCutOff(error) ? ended : Promise.reject(error)))}\n`,
    );
  };
  await run('set -- $SSH_CONNECTION; echo "hello from $(uname -n), port $4"');
  if (label !== "sliver") return;
  await run('echo "$(ls /proc | grep -c "^[0-9]") processes are visible in here"');
  // A job that takes more than its label gives is killed, and the machine is not affected. On cgroup v2 its login ends with it.
  await run(
    'tail /dev/zero 2>/dev/null; echo "a process that takes all memory exits with $?"',
    "a job that takes all memory ends as one, this login with it",
  );
}

/** Whether ssh lost its connection (ssh(1), EXIT STATUS), rather than took too long or ran a command that failed. */
function wasCutOff({ cause }: Error): boolean {
  return (cause as { readonly code?: unknown } | undefined)?.code === 255;
}

/** How a person logs in to the demo's nodes: with its key and no other, and the host keys that Nodeyard published. */
export function howToLogIn({ nodes }: Granted, { key, label }: RealNodes, stateFolder: string): string {
  const { username, interface_ip: address, connection_port: port } = nodes[0]!;
  const kind = label === "sliver" ? "sliver" : "static host";
  const options = `-o IdentitiesOnly=yes -o UserKnownHostsFile=${join(stateFolder, "known_hosts")}`;
  return `  ssh -i ${key} ${options} -p ${port} ${username}@${address}
                                             log in to a ${kind}, as long as this demo runs\n`;
}

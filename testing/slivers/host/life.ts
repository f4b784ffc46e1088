import type { NodeReport, SigningKeys, SliverSpecInput } from "@nodeyard/sliver-protocol";
import { SliverClient, SliverFaultError, sshTransport } from "@nodeyard/sliver-protocol";
import { writerOf } from "../writer.ts";
import type { HostMachine } from "./machine.ts";

/** Runs a step, and prints its result and duration. */
export type Step = <T>(what: string, work: () => Promise<T>) => Promise<T>;

export interface Launcher {
  readonly keys: SigningKeys;
  /** Logs in to the control account. */
  readonly controlKey: string;
  /** `nodeyard sliverd` with these words, of this machine; resolves to its output. */
  sliverd(...words: readonly string[]): Promise<string>;
}

interface Alive {
  /** Of sliverd. */
  readonly daemon: string;
  /** Number and start of the sliver's first process. */
  readonly init: string;
  /** Host keys of its own SSH server. */
  readonly hostKey: string;
}

/** Milliseconds. */
const CALL = 20 * 60_000;
const SPEC: SliverSpecInput = {
  name: "ada",
  generation: 1,
  instantiation: "plc-instantiated",
  rspec: { disk: 65_536, memoryCap: 131_072, pids: 64 },
};
const PARENT = "/sys/fs/cgroup/nodeyard-slivers";
const UNIT = "nodeyard-sliverd.service";

/** The whole life of an enrolled host, with the commands of launchers and operators. Throws at the first failed check. */
export async function liveThrough(machine: HostMachine, launcher: Launcher, step: Step): Promise<void> {
  const node = await step(
    "the image's machine has an id of its own, and sliverd answers by systemd",
    async () => {
      const own = await machine.sh("cat /var/lib/nodeyard-sliverd/node-id");
      if (!/^[0-9a-f-]{36}$/.test(own)) throw new Error(`its id is ${JSON.stringify(own)}`);
      await answers(machine, launcher, own);
      return own;
    },
  );
  const first = await step("a sliver of it runs", () => begin(machine, launcher, node));
  const second = await step("sliverd is restarted: the sliver goes on", async () => {
    await machine.sh(`systemctl restart ${UNIT}`);
    return adopted(machine, launcher, node, first);
  });
  await step("sliverd is killed: systemd starts it again, and the sliver goes on", async () => {
    await machine.sh(`kill -9 ${second.daemon}`);
    return adopted(machine, launcher, node, second);
  });
  await step("the machine boots again: sliverd is back, and the sliver, with its host key", () =>
    rebooted(machine, launcher, node, first),
  );
  await step("uninstalled, nothing of it is left", async () => {
    await launcher.sliverd("uninstall", "host", "--ssh-config", machine.sshConfig, "--json");
    await gone(machine);
  });
  const enrolled = "enrolled-1";
  const again = await step("nodeyard sliverd install: it answers, and a sliver runs", async () => {
    const words = ["--ssh-config", machine.sshConfig, "--node", enrolled, "--json"];
    await launcher.sliverd("install", "host", ...words);
    await answers(machine, launcher, enrolled);
    return begin(machine, launcher, enrolled);
  });
  await step("it boots again: sliverd is back, and the sliver", () =>
    rebooted(machine, launcher, enrolled, again),
  );
  await step("systemd has nothing to complain of", async () => {
    const failed = await machine.sh("systemctl --failed --plain --no-legend | cut -d' ' -f1");
    if (failed.includes("nodeyard")) throw new Error(`failed: ${failed}`);
  });
}

function clientOf({ address: host, port, hostKeys }: HostMachine, { controlKey }: Launcher): SliverClient {
  const patience = 300;
  return new SliverClient(sshTransport({ host, port, hostKeys, identityFile: controlKey, patience }));
}

/** Waits until the manager answers, through the control account, as this node; systemd starts its unit at a boot. */
async function answers(machine: HostMachine, launcher: Launcher, node: string): Promise<NodeReport> {
  const signal = AbortSignal.timeout(CALL);
  const client = clientOf(machine, launcher);
  for (;;) {
    try {
      const report = await client.status(signal);
      if (report.node !== node) throw new Error(`${report.node} answers, and not ${node}`);
      const unit = await machine.sh(`systemctl is-active ${UNIT}; systemctl is-enabled ${UNIT}`);
      if (unit !== "active\nenabled") throw new Error(`its unit is ${unit.replace("\n", ", ")}`);
      return report;
    } catch (error) {
      // While it starts, nothing answers behind the forwarder.
      if (signal.aborted || error instanceof SliverFaultError) throw error;
      if (!(error as Error).name.startsWith("Sliver")) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

async function begin(machine: HostMachine, launcher: Launcher, node: string): Promise<Alive> {
  const client = clientOf(machine, launcher);
  const writer = writerOf({ client, keys: launcher.keys, node, writer: "test", epoch: 1 }, CALL);
  await writer.change((slivers) => void slivers.set(SPEC.name, SPEC), AbortSignal.timeout(CALL));
  return running(machine, launcher, node);
}

/** Waits until the manager reports that the sliver runs; returns what the machine shows of it. */
async function running(machine: HostMachine, launcher: Launcher, node: string): Promise<Alive> {
  const signal = AbortSignal.timeout(CALL);
  const client = clientOf(machine, launcher);
  let report = await answers(machine, launcher, node);
  const ada = () => report.slivers.find(({ name }) => name === SPEC.name);
  while (ada()?.phase !== "running") report = await client.watch(report.sequence, signal);
  const { index, incarnation, login } = ada()!;
  const group = `${PARENT}/ny-${index}.${incarnation}/payload`;
  const [daemon, init, hostKey] = (
    await machine.sh(
      `systemctl show -P MainPID ${UNIT}
      for pid in $(cat ${group}/cgroup.procs); do
        grep -q '^NSpid:.*[[:space:]]1$' /proc/$pid/status && echo $pid $(cut -d' ' -f22 /proc/$pid/stat)
      done
      ssh-keyscan -t ed25519 ${login!.address} 2>/dev/null | cut -d' ' -f2-`,
    )
  ).split("\n");
  if (daemon === undefined || !/^\d+ \d+$/.test(init ?? "") || !hostKey?.startsWith("ssh-ed25519 "))
    throw new Error(`what is seen of the sliver: ${[daemon, init, hostKey].join("; ")}`);
  return { daemon, init: init!, hostKey };
}

/** Checks that the manager is another process, and that the sliver's process is the same. */
async function adopted(
  machine: HostMachine,
  launcher: Launcher,
  node: string,
  before: Alive,
): Promise<Alive> {
  const now = await running(machine, launcher, node);
  if (now.daemon === before.daemon) throw new Error(`sliverd is process ${now.daemon} as before`);
  if (now.init !== before.init || now.hostKey !== before.hostKey)
    throw new Error(`it is another sliver: ${JSON.stringify({ before, now })}`);
  return now;
}

async function rebooted(
  machine: HostMachine,
  launcher: Launcher,
  node: string,
  before: Alive,
): Promise<void> {
  await machine.reboot();
  const now = await running(machine, launcher, node);
  if (now.hostKey !== before.hostKey) throw new Error("the sliver has another host key than before");
}

async function gone(machine: HostMachine): Promise<void> {
  const left = await machine.sh(
    `ls -d /etc/nodeyard-sliver /usr/lib/nodeyard-sliverd /var/lib/nodeyard-sliverd /run/nodeyard-sliver ${PARENT} 2>/dev/null
    ls /etc/systemd/system /etc/ssh/sshd_config.d | grep nodeyard-sliver
    systemctl list-units --all --plain --no-legend '${UNIT}'
    grep nodeyard-control /etc/passwd
    ls /sys/class/net | grep ^ny-
    nft list tables | grep nodeyard
    true`,
  );
  if (left !== "") throw new Error(`still there: ${left}`);
}

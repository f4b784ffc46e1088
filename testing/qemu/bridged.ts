/**
 * Machines on a bridge, seen from a host that is a network namespace of its own: started there by `bridge.test.ts`, so that rules,
 * links and forwarding affect nothing else. Prints what was reached from where.
 */
import { rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { bridgeNames } from "@nodeyard/driver-qemu";
import { patient } from "../patience.ts";
import { Beyond, Client, Launches, qemuRig, reached, testImage } from "./index.ts";
import { output } from "./run.ts";

const SUBNET = "10.211.7.0/24";
const image = await testImage();
const client = await Client.make();
const boot = { kernel: image.kernel, initrd: image.initrd, "kernel-arguments": image.arguments };
const tiny = { name: "tiny", path: image.disk, format: "raw", ...boot };
const label = { ram: 128, disk: 1, "authorized-keys": [client.authorizedKey] };

/** Whether somebody accepts a connection. */
function opens(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, timeout: patient(3_000) });
  return new Promise((resolve) => {
    socket.on("connect", () => resolve(true));
    for (const event of ["error", "timeout"]) socket.on(event, () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

/** Whether a machine can answer under an unused address of the network. */
async function spoofs(say: (command: string) => Promise<string>): Promise<boolean> {
  await say("ip addr add 10.211.7.77/24 dev eth0");
  return opens("10.211.7.77", 22);
}

async function tried(network: string, ids: readonly string[], beyond: Beyond) {
  const rig = await qemuRig([tiny], label, { network, bridge: SUBNET, users: "61300-61309" });
  try {
    const launches = await Launches.open(rig);
    const machines = await Promise.all(ids.map((id) => launches.create(id)));
    const [first, second] = machines as [(typeof machines)[0], (typeof machines)[0] | undefined];
    const keys = await launches.hostKeys(first);
    if (second !== undefined) await launches.hostKeys(second);
    const say = (command: string) => client.run(first, keys, command);
    const nc = (host: string | null | undefined, port: number) =>
      say(`nc -w 3 ${host} ${port} </dev/null 2>/dev/null; true`);
    const facts = {
      // Addresses are assigned in the order of requests: the machines are made at the same time.
      addresses: machines.map(({ interfaceIp }) => interfaceIp).sort(),
      forwarded: machines.some(({ connection }) => connection !== undefined),
      name: (await say("hostname")).trim(),
      host: await reached(say),
      beyond: (await nc(beyond.address, beyond.port)).trim(),
      neighbour: second === undefined ? "" : (await nc(second.interfaceIp, 22)).trim(),
      spoofed: await spoofs(say),
      itself: await opens(first.interfaceIp as string, 22),
    };
    for (const id of ids) await launches.remove(id);
    const { namespace } = bridgeNames(rig.folder);
    const links = await output("ip", ["-n", namespace, "-o", "link"]);
    const left = links.split("\n").filter((line) => line.includes("tap")).length;
    return { ...facts, left };
  } finally {
    await rig.stop();
  }
}

const refused = await qemuRig([tiny], label, { network: "outbound", bridge: SUBNET }).then(async (rig) => {
  const error = await Launches.open(rig).catch((reason: Error) => reason.message);
  // It cannot be opened to look for machines, because there are none.
  rmSync(rig.folder, { recursive: true });
  return error;
});
writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
const beyond = await Beyond.make();
try {
  const restricted = await tried("restricted", ["0000000001", "0000000002"], beyond);
  const outbound = await tried("outbound", ["0000000003"], beyond);
  process.stdout.write(JSON.stringify({ refused, restricted, outbound }));
} finally {
  await beyond.close();
  await client.close();
}

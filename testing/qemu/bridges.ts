/**
 * Bridges without machines, seen from a host that is a network namespace of its own: started there by `bridge.test.ts`. Prints
 * which of them exist after the processes that had them open closed or were killed.
 */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bridgeNames } from "@nodeyard/driver-qemu";
import { blankDisk, Launches, type QemuRig, qemuRig, requireQemu } from "./index.ts";
import { output } from "./run.ts";

if (requireQemu() !== undefined) process.exit(1);

const image = { name: "blank", format: "raw", path: blankDisk(tmpdir()) };
const rig = (subnet: string) => qemuRig([image], { ram: 16, disk: 1 }, { bridge: subnet, "max-vms": 8 });
const rigs = await Promise.all(["10.211.1.0/24", "10.211.2.0/24", "10.211.3.0/24", "10.211.4.0/24"].map(rig));
const [shared, killed, occupied, later] = rigs as [QemuRig, QemuRig, QemuRig, QemuRig];

const says = (program: string, ...words: string[]) =>
  output(program, words).then(
    () => true,
    () => false,
  );

async function isThere({ folder }: QemuRig) {
  const { namespace, link } = bridgeNames(folder);
  return {
    namespace: await says("ip", "-n", namespace, "link", "show", "dev", "br0"),
    link: await says("ip", "link", "show", "dev", link),
    rules: await says("nft", "list", "table", "inet", `nodeyard_${link}`),
  };
}

/** The state that a killed launcher leaves: the process that had it open no longer exists. */
async function openedByTheDead(one: QemuRig): Promise<void> {
  await one.open(Launches.installation);
  const marks = join(one.folder, "open");
  for (const mark of readdirSync(marks))
    writeFileSync(join(marks, mark), JSON.stringify({ pid: process.pid, identity: "of an earlier boot" }));
}

try {
  // A bridge that only looks like ours: its mark belongs to another folder.
  await output("ip", ["link", "add", "nyq01234567", "type", "veth", "peer", "name", "nyqpeer"]);
  await output("ip", ["link", "set", "dev", "nyq01234567", "alias", "nodeyard-qemu /srv/elsewhere"]);

  const first = await shared.open(Launches.installation);
  const second = await shared.open(Launches.installation);
  const both = await isThere(shared);
  await first.close();
  const one = await isThere(shared);
  await second.close();
  const nobody = await isThere(shared);

  await openedByTheDead(killed);
  await openedByTheDead(occupied);
  mkdirSync(join(occupied.folder, "nodes", "somebody"));
  await (await later.open(Launches.installation)).close();
  const facts = {
    ...{ both, one, nobody },
    killed: await isThere(killed),
    occupied: await isThere(occupied),
    another: await says("ip", "link", "show", "dev", "nyq01234567"),
  };
  process.stdout.write(JSON.stringify(facts));
} finally {
  for (const one of rigs) await one.stop();
}

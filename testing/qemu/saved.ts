/**
 * Measures what a saved state saves, on an otherwise idle machine: `node testing/qemu/saved.ts [rounds] [--debian]`. Machines that boot and
 * machines that resume take turns; each is timed from the request until its own new host key is known and a client has logged in.
 * The result is one line of JSON, milliseconds.
 */
import { outliveReader } from "../outlive-reader.ts";
import { debianImage } from "./debian.ts";
import { Client, Launches, qemuRig, testImage } from "./index.ts";

outliveReader();

const debian = process.argv.includes("--debian");
const [rounds = 7] = process.argv.slice(2).filter(Number).map(Number);

const image = debian ? await debianImage() : await testImage();
/** Deadline for a Debian on a busy machine, seconds. */
const PATIENCE_S = 1800;
const client = await Client.make();
const boot = { kernel: image.kernel, initrd: image.initrd, "kernel-arguments": image.arguments };
const tiny = { name: "tiny", path: image.disk, format: "raw", ...boot };
const label = { ram: debian ? 512 : 256, disk: 1, seed: "fw_cfg", "authorized-keys": [client.authorizedKey] };
const patient = { "boot-timeout": PATIENCE_S, "launch-timeout": PATIENCE_S };
const rigs = {
  cold: await qemuRig([tiny], label, patient),
  saved: await qemuRig([tiny], { ...label, "saved-state": true }, patient),
};

async function timed(launches: Launches, nodeId: string) {
  const began = performance.now();
  const machine = await launches.create(nodeId);
  const keys = machine.hostKeys ?? (await launches.hostKeys(machine, PATIENCE_S * 1000));
  const scanned = performance.now() - began;
  const said = await client.run(machine, keys, "hostname");
  const ended = performance.now() - began;
  if (said !== `np${nodeId}\n`) throw new Error(`machine ${nodeId} says that it is ${said}`);
  await launches.remove(nodeId);
  return { scanned: Math.round(scanned), ended: Math.round(ended), keys: keys.join() };
}

try {
  const open = { cold: await Launches.open(rigs.cold), saved: await Launches.open(rigs.saved) };
  // Copies of the image and the state are made by the first of each.
  const first = { cold: await timed(open.cold, "0000000001"), saved: await timed(open.saved, "0000000001") };
  const found = { cold: [first.cold].slice(1), saved: [first.saved].slice(1) };
  for (let round = 0; round < rounds; round++)
    for (const kind of ["cold", "saved"] as const)
      found[kind].push(await timed(open[kind], String(round + 2).padStart(10, "0")));
  const median = (kind: "cold" | "saved", what: "scanned" | "ended") =>
    found[kind].map((one) => one[what]).sort((a, b) => a - b)[rounds >> 1] as number;
  const facts = {
    image: debian ? "debian" : "test image",
    rounds,
    making: first.saved.ended,
    cold: { key: median("cold", "scanned"), login: median("cold", "ended") },
    saved: { key: median("saved", "scanned"), login: median("saved", "ended") },
    faster: Number((median("cold", "ended") / median("saved", "ended")).toFixed(2)),
    keys: new Set([...found.cold, ...found.saved].map(({ keys }) => keys)).size === 2 * rounds,
    all: { cold: found.cold.map(({ ended }) => ended), saved: found.saved.map(({ ended }) => ended) },
  };
  process.stdout.write(`${JSON.stringify(facts)}\n`);
  process.exitCode = facts.faster >= 2.5 && facts.keys ? 0 : 1;
} finally {
  await rigs.cold.stop();
  await rigs.saved.stop();
  await client.close();
}

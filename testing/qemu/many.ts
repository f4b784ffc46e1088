/**
 * Many machines at once, a heavy run for an otherwise idle machine:
 * `node testing/qemu/many.ts [count] [patience, s] [--saved]`; with `--saved` all resume from one saved state.
 * All must answer, each with a host key of its own, and nothing may be left at the end. The result is one line of JSON.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { outliveReader } from "../outlive-reader.ts";
import { Launches, qemuRig, testImage } from "./index.ts";

outliveReader();

const saved = process.argv.includes("--saved");
const [count = 50, patience = 900] = process.argv.slice(2).filter(Number).map(Number);
const RAM = 128;

const image = await testImage();
const boot = { kernel: image.kernel, initrd: image.initrd, "kernel-arguments": image.arguments };
const tiny = { name: "tiny", path: image.disk, format: "raw", ...boot };
const limits = { "max-vms": count, "max-cores": count, "max-ram": count * (RAM + 256) };
const rig = await qemuRig([tiny], { ram: RAM, disk: 1, "saved-state": saved }, limits);
const began = performance.now();
const since = () => Math.round(performance.now() - began);
try {
  const launches = await Launches.open(rig);
  const ids = Array.from({ length: count }, (_, at) => String(at + 1).padStart(10, "0"));
  const answered: number[] = [];
  const machines = await Promise.all(ids.map((id) => launches.create(id)));
  const started = since();
  const keys = await Promise.all(
    machines.map(async (machine) => {
      const shown = machine.hostKeys ?? (await launches.hostKeys(machine, patience * 1000));
      answered.push(since());
      return shown.join();
    }),
  );
  const different = new Set(keys).size;
  await Promise.all(ids.map((id) => launches.remove(id)));
  const left = readdirSync(join(rig.folder, "nodes")).length;
  const facts = {
    count,
    saved,
    started,
    first: answered[0],
    last: answered.at(-1),
    different,
    left,
    ended: since(),
  };
  process.stdout.write(`${JSON.stringify(facts)}\n`);
  process.exitCode = different === count && left === 0 ? 0 : 1;
} finally {
  await rig.stop();
}

/**
 * A machine of an image with the element `nodeyard-sliverd`, from diskimage-builder to a reboot: `npm run e2e:sliver-host`. Exit code
 * 0: all checks passed; 1: one failed; 2: wrong options.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { readSigningKeys, sliverPaths } from "@nodeyard/sliver-protocol";
import { requireDiskimageBuilder } from "../../images/index.ts";
import { requireQemu } from "../../qemu/index.ts";
import { hostImage } from "./image.ts";
import { type Launcher, liveThrough, type Step } from "./life.ts";
import { HostMachine } from "./machine.ts";

const ROOT = join(import.meta.dirname, "../../..");
const USAGE = `npm run e2e:sliver-host -- [--keep] [--folder PATH]
As root: diskimage-builder makes an image with the element nodeyard-sliverd, QEMU boots it, and sliverd answers, adopts what ran, and
comes back with the machine; then the same for a machine that is enrolled over ssh.
  --keep          leave the folder with image, disk, console and keys there
  --folder PATH   one that was kept: its image and keys are used
`;
/** For the pool beside what Debian takes. */
const SLIVERD = { isolation: { pool: { bytes: 600_000_000 } }, startSpacingSeconds: 0 };
const COMMAND_MS = 20 * 60_000;

function options(): { readonly keep: boolean; readonly folder?: string | undefined } {
  try {
    const known = { keep: { type: "boolean" }, folder: { type: "string" } } as const;
    const { keep = false, folder } = parseArgs({ options: known }).values;
    if (folder !== undefined && !existsSync(join(folder, "host.qcow2")))
      throw new Error(`${folder} holds no host.qcow2`);
    return {
      keep: keep || folder !== undefined,
      ...(folder === undefined ? {} : { folder: resolve(folder) }),
    };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}`);
    return process.exit(2);
  }
}

const { keep, folder: kept } = options();
if (requireDiskimageBuilder() !== undefined || requireQemu() !== undefined) process.exit(1);

const start = performance.now();
const step: Step = async (what, work) => {
  const since = performance.now();
  process.stdout.write(`${what} ... `);
  const result = await work();
  process.stdout.write(`${((performance.now() - since) / 1000).toFixed(1)} s\n`);
  return result;
};
const node = async (script: string, ...words: readonly string[]) => {
  const args = ["--disable-warning=ExperimentalWarning", join(ROOT, script), ...words];
  return (await promisify(execFile)(process.execPath, args, { timeout: COMMAND_MS, cwd: ROOT })).stdout;
};

const stop = new AbortController();
const folder = kept ?? (await mkdtemp(join(tmpdir(), "nodeyard-sliver-host-")));
let machine: HostMachine | undefined;
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
try {
  // diskimage-builder's own users must be able to enter it.
  await chmod(folder, 0o755);
  const state = join(folder, "state");
  const config = join(folder, "sliverd.json");
  const bundle = join(folder, "bundle");
  const cli = (...words: readonly string[]) =>
    node("packages/nodeyard/cli/src/bin/nodeyard.ts", "--state", state, "sliverd", ...words);
  await writeFile(config, JSON.stringify(SLIVERD));
  await rm(bundle, { recursive: true, force: true });
  await step("sliverd's programs are bundled", () => node("tools/build/main.ts", "--bundle", bundle));
  if (kept === undefined) {
    await mkdir(state, { mode: 0o700 });
    await cli("keys", "init");
    const settings = await cli("settings", "--sliverd-config", config);
    const log: string[] = [];
    await step("diskimage-builder makes the image", () =>
      hostImage(folder, { settings, bundle, node: process.execPath }, (line) => log.push(line), stop.signal),
    ).finally(() => writeFile(join(folder, "build.log"), log.join("\n")));
  }
  const places = sliverPaths(state);
  const launcher: Launcher = {
    keys: readSigningKeys(places.signingKeys),
    controlKey: places.controlKey,
    sliverd: (verb, ...words) =>
      cli(verb!, ...words, ...(verb === "install" ? ["--bundle", bundle, "--sliverd-config", config] : [])),
  };
  for (const name of ["disk.qcow2", "id", "id.pub"]) await rm(join(folder, name), { force: true });
  machine = await step("a machine boots it and lets its operator in", () =>
    HostMachine.boot(folder, join(folder, "host.qcow2"), stop.signal),
  );
  await liveThrough(machine, launcher, step);
  console.log(`done in ${((performance.now() - start) / 1000).toFixed(1)} s`);
} catch (error) {
  console.error(`\nFAILED: ${(error as Error).stack}`);
  const log = await machine?.sh("journalctl -n 40 --no-pager -u nodeyard-sliverd").catch(() => undefined);
  if (log !== undefined) console.error(log);
  process.exitCode = 1;
} finally {
  await machine?.stop();
  if (keep) console.log(`kept: ${folder}`);
  else await rm(folder, { recursive: true, force: true });
}

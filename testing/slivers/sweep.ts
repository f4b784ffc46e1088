import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSigningKeys } from "@nodeyard/sliver-protocol";

const SLIVERD = join(import.meta.dirname, "../../packages/slivers/manager/src/bin/sliverd.ts");
const CGROUPS = "/sys/fs/cgroup";
/** Groups of all slivers, and of machines that tests make. */
const GROUP = /^(?:nodeyard-slivers|foreign-\w{6})$/;
/** The test machines' end of a network, and its cables. */
const WORLD = "/run/netns/ny-world";
const WORLD_ADDRESS = "198.18.219.2";
/** Of addresses that no sliver has, unless a test configures another network. */
const ROUTE = "10.213.0.0/16";
const CABLES = ["ny-w0", "nyforeign0"];
/** Milliseconds, and looks for the end of what was killed. */
const BETWEEN = 50;
const LOOKS = 400;

/**
 * Removes what a test file left on this machine because it failed half way or was killed, so that the files after it do not fail for it.
 * Returns what there was, one line each; nothing after files that worked. Only what belongs to folders of tests is touched: where a
 * `sliverd` of somebody else runs, nothing is.
 */
export function sweep(): string[] {
  const killed = killTests();
  if (processes().some(({ words }) => isDaemon(words) && !isOfTests(words))) return killed;
  const all = readdirSync(tmpdir()).map((name) => join(tmpdir(), name));
  const machines = killed.length === 0 ? [] : all.filter((path) => /\/nodeyard-foreign-\w+$/.test(path));
  // By what is mounted: quick tests beside these have folders of such names, too.
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "");
  const folders = all.filter(
    (path) =>
      /\/nodeyard-[\w-]+$/.test(path) && ["pool", "lxcfs"].some((name) => mounts.includes(join(path, name))),
  );
  const groups = hierarchies().flatMap((path) =>
    readdirSync(path)
      .filter((name) => GROUP.test(name))
      .map((name) => join(path, name)),
  );
  const cables = CABLES.filter((name) => existsSync(`/sys/class/net/${name}`));
  const isWorld = existsSync(WORLD);
  const routes = execFileSync("ip", ["route", "show", "exact", ROUTE], { encoding: "utf8" }).trim();
  for (const group of groups) if (!group.endsWith("nodeyard-slivers")) removeGroups(group);
  for (const folder of folders) dismantle(folder);
  if (groups.length > 0 || routes !== "") dismantle(join(tmpdir(), `nodeyard-sweep-${process.pid}`));
  // A cable may go by itself meanwhile, with the other end.
  for (const name of cables) spawnSync("ip", ["link", "del", name]);
  if (isWorld) execFileSync("ip", ["netns", "del", "ny-world"]);
  for (const folder of machines) rmSync(folder, { recursive: true, force: true });
  return [
    ...killed,
    ...folders,
    ...groups,
    ...cables,
    ...(isWorld ? [WORLD] : []),
    ...(routes === "" ? [] : [routes]),
  ];
}

/** As an operator would, from whatever state; the folder goes, too. */
function dismantle(folder: string): void {
  const own = join(folder, "sweep");
  mkdirSync(own, { recursive: true });
  const file = join(own, "sliverd.json");
  const isolation = { folder, pool: { bytes: 300_000_000 } };
  const { keySet } = createSigningKeys(join(own, "keys.json"));
  const state = { stateFolder: join(own, "state"), runFolder: join(own, "run") };
  writeFileSync(file, JSON.stringify({ backEnd: "account", keySet, isolation, ...state }));
  const words = ["--disable-warning=ExperimentalWarning", SLIVERD, "--dismantle", "--config", file];
  execFileSync(process.execPath, words, { stdio: ["ignore", "ignore", "inherit"] });
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Managers, machines and servers whose files are those of a test that has ended, and all that they started in namespaces of their own. A test
 * that runs, beside these, is the parent of what it started.
 */
function killTests(): string[] {
  const found = processes().filter(
    ({ pid, words }) => isOfTests(words) && !/node$/.test(wordsOf(parentOf(pid))[0] ?? ""),
  );
  for (const { pid } of found) process.kill(pid, "SIGKILL");
  for (let look = 0; found.some(({ pid }) => wordsOf(pid).length > 0) && look < LOOKS; look++) pause();
  return found.map(({ pid, words }) => `${pid} ${words.join(" ").slice(0, 200)}`);
}

function isOfTests(words: readonly string[]): boolean {
  const text = words.join(" ");
  return (
    (isDaemon(words) && text.includes(`--config ${tmpdir()}/`)) ||
    (words[0] === "unshare" && text.includes(`${tmpdir()}/nodeyard-foreign-`)) ||
    (words.includes("-e") && text.includes(WORLD_ADDRESS))
  );
}

function isDaemon(words: readonly string[]): boolean {
  return words.some((word) => /\/sliverd(?:\.ts|\.mjs)?$/.test(word)) && words.includes("--config");
}

function processes(): { readonly pid: number; readonly words: readonly string[] }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => ({ pid: Number(name), words: wordsOf(Number(name)) }));
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]);
  } catch {
    return 0;
  }
}

/** None of a zombie. */
function wordsOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
      .split("\0")
      .filter((word) => word !== "");
  } catch {
    return [];
  }
}

function hierarchies(): string[] {
  return [
    ".",
    ...readdirSync(CGROUPS, { withFileTypes: true })
      .filter((one) => one.isDirectory())
      .map(({ name }) => name),
  ].map((name) => join(CGROUPS, name));
}

/** From the innermost out, once their processes have ended. */
function removeGroups(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroups(join(path, entry.name));
  for (let look = 0; ; look++) {
    try {
      return rmdirSync(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EBUSY" || look === LOOKS) throw error;
      pause();
    }
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BETWEEN);
}

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Options of Node with which `sliverd` notes what it starts and waits for, in a file of that name. */
export function noting(file: string): Readonly<Record<string, string>> {
  writeFileSync(file, "");
  return {
    NODEYARD_BENCH_PROGRAMS: file,
    NODE_OPTIONS: `--import ${join(import.meta.dirname, "programs.mjs")}`,
  };
}

/** A program or an fsync, in milliseconds of the monotonic clock. */
interface Noted {
  readonly what: string;
  readonly begin: number;
  readonly end: number;
}

/** Now, by the clock of the notes. */
export function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Where the time of one start went, in milliseconds from the request on, and how long its parts took, some of which run side by side.
 * Undefined: LXC was not started, as for a sliver that was kept ready.
 */
export function phasesOf(file: string, asked: number, ran: number): Record<string, number> | undefined {
  const noted = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Noted)
    .filter(({ begin }) => begin >= asked);
  const those = (pattern: RegExp) => noted.filter(({ what }) => pattern.test(what));
  const took = (pattern: RegExp) => spanOf(those(pattern));
  const [lxc] = those(/^\/usr\/bin\/lxc-start /);
  if (lxc === undefined) return undefined;
  const making = those(/^(?:ip|tc|nft -f|btrfs) /);
  return {
    "first program begins": Math.min(lxc.begin, ...making.map(({ begin }) => begin)) - asked,
    "lxc-start begins": lxc.begin - asked,
    "its first program runs": lxc.end - asked,
    "sshd answers": ran - asked,
    "ip, tc and nft": took(/^(?:ip|tc|nft -f) /),
    "snapshot and limit": took(/^btrfs (?:subvolume (?:snapshot|create)|qgroup) /),
    "look at rules": took(/^nft list /),
    "fsyncs, number": those(/^fsync$/).length,
    fsyncs: those(/^fsync$/).reduce((sum, { begin, end }) => sum + end - begin, 0),
  };
}

function spanOf(noted: readonly Noted[]): number {
  if (noted.length === 0) return 0;
  return Math.max(...noted.map(({ end }) => end)) - Math.min(...noted.map(({ begin }) => begin));
}

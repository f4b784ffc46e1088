import { createHash } from "node:crypto";
import type { QemuLabelOwn } from "../config.ts";

/** What a saved state is of. Nothing in it is a node's or a label's alone: the guest is saved before it knows either. */
export interface SavedSubject {
  /** The image, the kernel and the initial RAM disk, by their contents. */
  readonly files: readonly string[];
  /** As QEMU says it: a state is read by the version that wrote it. */
  readonly qemu: string;
  /** Processor and kernel of the host where guests use the processor itself. */
  readonly host: string;
  readonly accelerator: "kvm" | "tcg";
  /** The script that parks the guest. */
  readonly script: string;
}

type Shape = Pick<QemuLabelOwn, "boot" | "cores" | "ram" | "disk" | "seed">;

/** Names a state: two machines have one name only where one state serves both. */
export function savedKey(subject: SavedSubject, { boot, cores, ram, disk, seed }: Shape): string {
  const shape = { arguments: boot?.arguments ?? null, cores, ram, disk, seed };
  return createHash("sha256")
    .update(JSON.stringify([LAYOUT, subject, shape]))
    .digest("hex")
    .slice(0, 40);
}

/** Of the devices that a state holds: one more whenever the command line changes what the guest sees. */
const LAYOUT = 1;

/** What makes a guest that was saved a machine of its own. */
export interface Identity {
  /** 64 bytes, hexadecimal. */
  readonly entropy: string;
  /** Seconds since the epoch. */
  readonly time: number;
  /** 32 hexadecimal digits. */
  readonly machineId: string;
  readonly hostname: string;
  /** OpenSSH's file of a private key. */
  readonly hostKey: string;
}

/**
 * The lines that the script in the guest reads. Its shell reads words: whatever is not plainly one is refused here.
 * Entropy comes first, so that nothing is done with what all siblings have.
 */
export function orders({ entropy, time, machineId, hostname, hostKey }: Identity): string {
  const lines = [
    `entropy ${matched(/^[0-9a-f]{128}$/, entropy, "entropy")}`,
    `time ${Math.round(time)}`,
    `machine-id ${matched(/^[0-9a-f]{32}$/, machineId, "machine id")}`,
    `hostname ${matched(/^[A-Za-z0-9][A-Za-z0-9.-]*$/, hostname, "hostname")}`,
    ...hostKey
      .trimEnd()
      .split("\n")
      .map((line) => `host-key ${matched(/^[A-Za-z0-9+/= -]+$/, line, "host key")}`),
    "go",
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function matched(grammar: RegExp, text: string, what: string): string {
  if (grammar.test(text)) return text;
  throw new TypeError(`the ${what} for a guest does not match ${grammar}`);
}

import { hashOf } from "@nodeyard/driver";
import type { QemuLabelOwn } from "../config.ts";

/** What a saved state depends on. It contains nothing of a node or label, because the guest is saved before it has an identity. */
export interface SavedSubject {
  /** Contents of the image, the kernel and the initial RAM disk. */
  readonly files: readonly string[];
  /** QEMU's version. Only the version that wrote a state reads it. */
  readonly qemu: string;
  /** Processor and kernel of the host, for guests under KVM. */
  readonly host: string;
  readonly accelerator: "kvm" | "tcg";
  /** The script that parks the guest. */
  readonly script: string;
}

/** The part of a label that the state depends on. Keys and user data are not in it: they come with the identity. */
type Shape = Pick<QemuLabelOwn, "boot" | "cores" | "ram" | "disk" | "seed">;

/** The key of a state. Two machines have the same key only if one state serves both. */
export function savedKey(subject: SavedSubject, { boot, cores, ram, disk, seed }: Shape): string {
  const shape = { arguments: boot?.arguments ?? null, cores, ram, disk, seed };
  return hashOf([LAYOUT, subject, shape]).slice(0, 40);
}

/** Version of the devices in a state. Increase it whenever the command line changes what the guest sees. */
const LAYOUT = 1;

/** The identity that a restored guest gets. */
export interface Identity {
  /** 64 bytes, hexadecimal. */
  readonly entropy: string;
  /** Seconds since the epoch. */
  readonly time: number;
  /** 32 hexadecimal digits. */
  readonly machineId: string;
  readonly hostname: string;
  /** The content of OpenSSH's private key file. */
  readonly hostKey: string;
}

/**
 * The lines for the script in the guest. The script's shell reads words, so any value that does not match its grammar is refused
 * here. Entropy comes first, so that the guest does nothing with the random state that all copies share.
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

/** The text, if it has the grammar. The launcher makes all of these values, so anything else is an error of this program. */
function matched(grammar: RegExp, text: string, what: string): string {
  if (grammar.test(text)) return text;
  throw new TypeError(`the ${what} for a guest does not match ${grammar}`);
}

import type { PoolConfig, ProviderConfig } from "@nodeyard/driver";

/** What only this driver understands of a provider. */
export interface QemuProviderOwn {
  /** Absolute. Holds the images and one folder per machine; one host and one set of limits for whoever names it. */
  readonly folder: string;
  /** Host name or machine id of the host that the provider belongs to; null: the first that opens the folder. */
  readonly host: string | null;
  /** User name, or "uid" or "uid:gid", that QEMU runs as; null: whoever runs the launcher, unless that is root. */
  readonly user: string | null;
  /** Numbers of which each machine runs as one of its own; null: all run as `user`. */
  readonly users: NumberRange | null;
  /** Machines have addresses of this network; null: each is a port of `address`. */
  readonly bridge: Subnet | null;
  /** Address of the host that clients reach the machines' ports at. */
  readonly address: string;
  readonly accelerator: "auto" | "kvm" | "tcg";
  /** For a machine to show its host key under KVM before `auto` takes TCG instead, milliseconds. */
  readonly probeTimeoutMs: number;
  /** restricted: no packet leaves the machine but answers. outbound: anywhere but to this host. */
  readonly network: "restricted" | "outbound";
  /** QEMU's program. */
  readonly emulator: string;
  /** Amounts for all machines of the folder; absent: what the host has. */
  readonly limits: { readonly instances: number; readonly cores: number | null; readonly ram: number | null };
}

/** A network of IPv4 for machines: the first address is the host's, each further one a machine's. */
export interface Subnet {
  /** As a number; its host part is 0. */
  readonly base: number;
  readonly prefix: number;
}

/** Both ends belong to it. */
export interface NumberRange {
  readonly first: number;
  readonly last: number;
}

/** An image that is a file of this host. The format is never guessed: a raw image could pretend to be any. */
export interface FileImage {
  readonly path: string;
  readonly format: "qcow2" | "raw";
}

/** A kernel that QEMU loads itself, instead of what the disk's boot sector loads. */
export interface BootFiles {
  readonly kernel: string;
  readonly initrd: string | null;
  readonly arguments: string;
}

export interface QemuLabelOwn {
  /** Null: the label boots an upload. */
  readonly file: FileImage | null;
  /** Null: from the disk. */
  readonly boot: BootFiles | null;
  readonly cores: number;
  /** MiB that the guest sees. */
  readonly ram: number;
  /** GiB that the guest sees. */
  readonly disk: number;
  /** How the guest hears of its name and keys: a NoCloud disk for cloud-init, and always files of fw_cfg. */
  readonly seed: "nocloud" | "fw_cfg";
  /** Whether machines go on from a state that the first one was saved in, before it had an identity. */
  readonly savedState: boolean;
  /** Lines of authorized_keys. */
  readonly authorizedKeys: readonly string[];
  /** Handed on as it is. */
  readonly userData: string | null;
}

export type QemuPoolConfig = PoolConfig<undefined, QemuLabelOwn>;
export type QemuProviderConfig = ProviderConfig<QemuProviderOwn, undefined, QemuLabelOwn>;

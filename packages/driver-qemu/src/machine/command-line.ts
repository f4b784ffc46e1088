/** QEMU's command line for one machine. Paths are relative to the folder that QEMU is started in. */
export interface MachineSpec {
  /** Made anew for every machine; what its process is recognised by. */
  readonly uuid: string;
  /** For people who look at a list of processes. */
  readonly name: string;
  readonly cores: number;
  /** MiB */
  readonly ram: number;
  readonly accelerator: "kvm" | "tcg";
  readonly boot: { readonly initrd: boolean; readonly arguments: string } | null;
  /** For a guest that parks at its start, to be saved there or to go on from there; null: it starts as every other. */
  readonly parking: Parking | null;
  /** Whether there is a NoCloud disk beside the files. */
  readonly seedDisk: boolean;
  readonly network: Network;
}

export type Network =
  /** QEMU's own network: the host listens for the guest's port. */
  | {
      readonly kind: "user";
      readonly reach: "restricted" | "outbound";
      readonly address: string;
      readonly port: number;
      readonly guestPort: number;
    }
  /** A tap that is there already, in the network namespace that QEMU is started in. */
  | { readonly kind: "tap"; readonly tap: string; readonly mac: string };

/** What a machine that is saved and those that are made of it have in common, device by device, and no other has. */
export interface Parking {
  /** Differs in each: tells a guest that knows the device (VMGENID) that it is a copy. */
  readonly generation: string;
  /** Whether the guest is read from `STATE_FD` instead of started. */
  readonly resume: boolean;
}

/** Where QEMU finds a saved state: a file that it may read through this descriptor, and nowhere else. */
export const STATE_FD = 3;

export const FILES = {
  disk: "disk.qcow2",
  console: "console.log",
  pid: "qemu.pid",
  monitor: "qmp.sock",
  /** The guest's second serial port, while it is parked. */
  agent: "agent.sock",
  /** Where QEMU writes its guest to. */
  state: "state.sock",
  /** What QEMU itself says. */
  log: "qemu.log",
  base: "../base",
  /** The disk as it was when the guest was saved; its own base is `base`, by the same way. */
  frozen: "../frozen/disk",
  kernel: "../kernel",
  initrd: "../initrd",
  seed: "../seed",
  seedDisk: "../seed/disk",
} as const;

/** Files of the seed, by name; each is handed over by fw_cfg and is on the NoCloud disk. */
const SEED_FILES = ["meta-data", "user-data", "vendor-data", "authorized-keys"] as const;
/** Where nobody but us gives the guest its address. */
const NETWORK_FILE = "network-config";

export function seedNames(addressed: boolean): readonly string[] {
  return addressed ? [...SEED_FILES, NETWORK_FILE] : SEED_FILES;
}

/** The script that parks a guest; only guests that are to be parked are handed it. */
export const PARKED_FILE = "parked";

/**
 * Arguments of QEMU: a `pc` without any device but what is named here. Everything that a guest can talk
 * to is one more way out of it.
 */
export function commandLine(spec: MachineSpec): readonly string[] {
  return [
    ...["-name", `guest=${escaped(spec.name)}`, "-uuid", spec.uuid],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-vga", "none"],
    ...["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"],
    ...["-pidfile", FILES.pid, "-qmp", `unix:${FILES.monitor},server=on,wait=off`],
    ...["-machine", "pc", ...accelerator(spec.accelerator)],
    ...["-smp", String(spec.cores), "-m", String(spec.ram)],
    ...["-chardev", `file,id=console,path=${FILES.console},append=on`, "-serial", "chardev:console"],
    ...["-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"],
    ...parking(spec.parking),
    ...disk("disk", "qcow2", FILES.disk, false),
    ...(spec.seedDisk ? disk("seed", "raw", FILES.seedDisk, true) : []),
    ...seedNames(spec.network.kind === "tap").flatMap((file) => [
      "-fw_cfg",
      `name=opt/org.nodeyard/${file},file=${FILES.seed}/${file}`,
    ]),
    ...network(spec),
    ...boot(spec),
  ];
}

/** The host's port, read back from the arguments of a running process; undefined when they are none of ours. */
export function forwardedPort(argv: readonly string[]): number | undefined {
  const netdev = argv[argv.indexOf("-netdev") + 1] ?? "";
  const [, port] = /hostfwd=tcp:[^,]*:(\d+)-:\d+$/.exec(netdev) ?? [];
  return port === undefined ? undefined : Number(port);
}

/** Whether a process was started with this machine's id. */
export function isMachine(argv: readonly string[], uuid: string): boolean {
  return argv.some((word, at) => word === "-uuid" && argv[at + 1] === uuid);
}

function accelerator(which: MachineSpec["accelerator"]): readonly string[] {
  // The cache of translated code is QEMU's own memory: its default of up to 1 GiB is far more than what is counted for a
  // machine beside the guest's (`OVERHEAD_MIB`).
  return which === "kvm" ? ["-accel", "kvm", "-cpu", "host"] : ["-accel", "tcg,tb-size=64", "-cpu", "max"];
}

function disk(id: string, format: string, file: string, readOnly: boolean): readonly string[] {
  const mode = readOnly ? ",read-only=on" : ",discard=unmap";
  return [
    ...["-blockdev", `driver=file,node-name=${id}-file,filename=${file}${mode}`],
    ...["-blockdev", `driver=${format},node-name=${id},file=${id}-file${mode}`],
    ...["-device", `virtio-blk-pci,drive=${id}${id === "disk" ? ",bootindex=1" : ""}`],
  ];
}

function network({ network }: MachineSpec): readonly string[] {
  if (network.kind === "tap")
    return [
      ...["-netdev", `tap,id=net,ifname=${network.tap},script=no,downscript=no`],
      ...["-device", `virtio-net-pci,netdev=net,romfile=,mac=${network.mac}`],
    ];
  const { address, port, guestPort } = network;
  // Restricted: the guest sends answers to who came through the port, and nothing else to anywhere.
  const restrict = network.reach === "restricted" ? "on" : "off";
  return [
    ...["-netdev", `user,id=net,restrict=${restrict},hostfwd=tcp:${address}:${port}-:${guestPort}`],
    ...["-device", "virtio-net-pci,netdev=net,romfile="],
  ];
}

function boot({ boot }: MachineSpec): readonly string[] {
  if (boot === null) return ["-boot", "strict=on"];
  const initrd = boot.initrd ? ["-initrd", FILES.initrd] : [];
  return ["-kernel", FILES.kernel, ...initrd, "-append", boot.arguments];
}

function parking(parking: MachineSpec["parking"]): readonly string[] {
  if (parking === null) return [];
  return [
    ...["-chardev", `socket,id=agent,path=${FILES.agent},server=on,wait=off`, "-serial", "chardev:agent"],
    ...["-device", `vmgenid,guid=${parking.generation}`],
    ...["-fw_cfg", `name=opt/org.nodeyard/parked,file=${FILES.seed}/${PARKED_FILE}`],
    ...(parking.resume ? ["-incoming", `fd:${STATE_FD}`] : []),
  ];
}

/** In QEMU's option lists a comma is written twice. */
function escaped(text: string): string {
  return text.replaceAll(",", ",,");
}

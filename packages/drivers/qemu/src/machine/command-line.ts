/** The facts from which QEMU's command line is made. Paths are relative to the folder in which QEMU starts. */
export interface MachineSpec {
  /** New for every machine; identifies its process. */
  readonly uuid: string;
  /** For people who read the list of processes. */
  readonly name: string;
  readonly cores: number;
  /** MiB */
  readonly ram: number;
  readonly accelerator: "kvm" | "tcg";
  /** The kernel that QEMU loads; null: the disk's boot sector. */
  readonly boot: { readonly initrd: boolean; readonly arguments: string } | null;
  /** For a guest that parks at its start, to be saved or to continue; null: it boots normally. */
  readonly parking: Parking | null;
  /** Whether there is a NoCloud disk besides the fw_cfg files. */
  readonly seedDisk: boolean;
  readonly network: Network;
}

/** How the guest is connected. */
export type Network =
  /** QEMU's user-mode network: the host listens on a port and forwards it to the guest. */
  | {
      readonly kind: "user";
      readonly reach: "restricted" | "outbound";
      readonly address: string;
      readonly port: number;
      readonly guestPort: number;
    }
  /** An existing tap in the network namespace in which QEMU starts. */
  | { readonly kind: "tap"; readonly tap: string; readonly mac: string };

/** Devices of a guest that is saved and of the machines that continue from it. They must be the same for both. */
export interface Parking {
  /** Different in each machine: tells a guest that supports VMGENID that it is a copy. */
  readonly generation: string;
  /** Whether the guest is read from `STATE_FD` instead of booted. */
  readonly resume: boolean;
}

/** Descriptor from which QEMU reads a saved state, so that it needs no access to the file by its path. */
const STATE_FD = 3;

/** Files of a machine, relative to its folder `run`, which belongs to QEMU's user. Those of the launcher are above it. */
export const FILES = {
  disk: "disk.qcow2",
  console: "console.log",
  pid: "qemu.pid",
  monitor: "qmp.sock",
  /** The guest's second serial port, used while it is parked. */
  agent: "agent.sock",
  /** Socket to which QEMU writes the guest's state. */
  state: "state.sock",
  /** QEMU's own output. */
  log: "qemu.log",
  base: "../base",
  /** The disk at the time of saving; its base is `base`, by the same relative path. */
  frozen: "../frozen/disk",
  kernel: "../kernel",
  initrd: "../initrd",
  seed: "../seed",
  seedDisk: "../seed/disk",
} as const;

/** Files of the seed. Each is passed by fw_cfg and is also on the NoCloud disk. */
const SEED_FILES = ["meta-data", "user-data", "vendor-data", "authorized-keys"] as const;
/** Added when the guest gets its address from the seed, because there is no DHCP on the bridge. */
const NETWORK_FILE = "network-config";

/** The files that QEMU passes to the guest. `addressed`: the guest is on a bridge. */
function seedNames(addressed: boolean): readonly string[] {
  return addressed ? [...SEED_FILES, NETWORK_FILE] : SEED_FILES;
}

/** The script that parks a guest. Only guests that will be parked get it. */
export const PARKED_FILE = "parked";

/** QEMU's arguments: a `pc` machine with only the devices named here. Every further device would be another way for a guest to attack QEMU. */
export function commandLine(spec: MachineSpec): readonly string[] {
  return [
    ...["-name", `guest=${escaped(spec.name)}`, "-uuid", spec.uuid],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-vga", "none"],
    // QEMU may start no program, change neither its user nor its limits, and make no obsolete system call.
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

/** The host's port from the arguments of a running process; undefined when they are not Nodeyard's. */
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
  // By default QEMU's cache of translated code may take 1 GiB, far more than what is counted for a machine besides the guest's
  // memory (`OVERHEAD_MIB`).
  return which === "kvm" ? ["-accel", "kvm", "-cpu", "host"] : ["-accel", "tcg,tb-size=64", "-cpu", "max"];
}

/** A virtio disk. `discard=unmap` gives blocks that the guest trims back to the host. */
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
  // Restricted: the guest can only answer connections that come through the forwarded port.
  const restrict = network.reach === "restricted" ? "on" : "off";
  return [
    ...["-netdev", `user,id=net,restrict=${restrict},hostfwd=tcp:${address}:${port}-:${guestPort}`],
    ...["-device", "virtio-net-pci,netdev=net,romfile="],
  ];
}

/** `strict=on`: the firmware boots from the disk or not at all, and does not try a network. */
function boot({ boot }: MachineSpec): readonly string[] {
  if (boot === null) return ["-boot", "strict=on"];
  const initrd = boot.initrd ? ["-initrd", FILES.initrd] : [];
  return ["-kernel", FILES.kernel, ...initrd, "-append", boot.arguments];
}

/** The agent's serial port, the generation id and the script: the same devices in the same order for saving and resuming. */
function parking(parking: MachineSpec["parking"]): readonly string[] {
  if (parking === null) return [];
  return [
    ...["-chardev", `socket,id=agent,path=${FILES.agent},server=on,wait=off`, "-serial", "chardev:agent"],
    ...["-device", `vmgenid,guid=${parking.generation}`],
    ...["-fw_cfg", `name=opt/org.nodeyard/parked,file=${FILES.seed}/${PARKED_FILE}`],
    ...(parking.resume ? ["-incoming", `fd:${STATE_FD}`] : []),
  ];
}

/** A comma in a value of QEMU's option lists is written twice. */
function escaped(text: string): string {
  return text.replaceAll(",", ",,");
}

export type Accelerator = "kvm" | "tcg";

export interface GuestMachine {
  readonly accelerator: Accelerator;
  readonly kernel: string;
  readonly initrd: string;
  /** Disk with the system; writes of the guest are discarded. */
  readonly root: string;
  /** Disk with this repository. */
  readonly work: string;
  /** Disk with the machine of the first job. */
  readonly job?: string;
  /** File that gets the guest's results. */
  readonly results: string;
  /** Socket for commands to a guest that is kept. */
  readonly orders?: string;
  /** Processors under KVM; without it there is one, because several would take turns at the speed of one. */
  readonly cores: number;
  readonly mebibytes: number;
}

/**
 * Guest time advances with the instructions that the guest executes, one nanosecond each, and with real time while it is idle. So a second
 * in the guest allows as much work as on a machine of its own, however slow and busy this one is, and its rates and deadlines depend on
 * the guest alone. Time must not jump while the guest is idle (`sleep=off`): the guest is idle while it waits for its disk, and on a busy
 * machine each read would then take minutes of guest time.
 */
const OWN_TIME = [
  "-accel",
  "tcg,thread=single",
  "-cpu",
  "max",
  "-smp",
  "1",
  "-icount",
  "shift=0,sleep=on",
  "-rtc",
  "clock=vm",
];

/** QEMU's arguments. The guest has no network device: what runs in it tries to break out of slivers. */
export function commandLine(machine: GuestMachine): string[] {
  const { accelerator, kernel, initrd, root, work, job, results, orders, cores, mebibytes } = machine;
  const disk = (file: string, more: string) => ["-drive", `file=${quoted(file)},if=virtio,format=raw${more}`];
  return [
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"],
    ...["-m", String(mebibytes)],
    ...(accelerator === "kvm" ? ["-accel", "kvm", "-cpu", "host", "-smp", String(cores)] : OWN_TIME),
    ...["-kernel", kernel, "-initrd", initrd],
    // Mitigations of speculation are expensive where each instruction is translated, and protect nothing there.
    ...["-append", "root=/dev/vda rw console=ttyS0 quiet mitigations=off panic=-1 init=/nodeyard-boot"],
    ...disk(root, ",snapshot=on"),
    ...disk(work, ",cache=unsafe"),
    ...(job === undefined ? [] : disk(job, ",cache=unsafe")),
    ...["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"],
    ...["-device", "virtio-serial", "-chardev", `file,id=results,path=${quoted(results)}`],
    ...["-device", "virtserialport,chardev=results,name=org.nodeyard.results"],
    ...(orders === undefined
      ? []
      : [
          ...["-chardev", `socket,id=orders,server=on,wait=off,path=${quoted(orders)}`],
          ...["-device", "virtserialport,chardev=orders,name=org.nodeyard.orders"],
        ]),
  ];
}

/** QEMU ends a value at a comma, unless it is doubled. */
function quoted(path: string): string {
  return path.replaceAll(",", ",,");
}

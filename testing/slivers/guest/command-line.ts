export type Accelerator = "kvm" | "tcg";

export interface GuestMachine {
  readonly accelerator: Accelerator;
  readonly kernel: string;
  readonly initrd: string;
  /** Disk with the system; what the guest writes to it is forgotten. */
  readonly root: string;
  /** Disk with this repository. */
  readonly work: string;
  /** File that gets what the guest has to say at its end. */
  readonly results: string;
  /** Socket by which a guest that is kept gets its orders. */
  readonly orders?: string;
  /** Under KVM; else it has one, since more would wait for each other at the pace of one. */
  readonly cores: number;
  readonly mebibytes: number;
}

/**
 * Time goes by with the instructions that the guest carries out, one nanosecond each, and with ours where it has nothing to do.
 * So seconds mean to the guest what they mean to a machine of its own, however slow and busy this one is: rates and
 * deadlines in it hold or do not hold for what the guest does. It must not jump where the guest idles (`sleep=off`): the
 * guest waits for its disk that way, and on a busy machine each read would take it minutes.
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
  const { accelerator, kernel, initrd, root, work, results, orders, cores, mebibytes } = machine;
  const disk = (file: string, more: string) => ["-drive", `file=${quoted(file)},if=virtio,format=raw${more}`];
  return [
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"],
    ...["-m", String(mebibytes)],
    ...(accelerator === "kvm" ? ["-accel", "kvm", "-cpu", "host", "-smp", String(cores)] : OWN_TIME),
    ...["-kernel", kernel, "-initrd", initrd],
    // What guards against speculation costs much where each instruction is translated, and guards nothing.
    ...["-append", "root=/dev/vda rw console=ttyS0 quiet mitigations=off panic=-1 init=/nodeyard-boot"],
    ...disk(root, ",snapshot=on"),
    ...disk(work, ",cache=unsafe"),
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

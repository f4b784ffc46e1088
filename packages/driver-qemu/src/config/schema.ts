import { bool, closed, commonPoolKeys, connectionKeys, dict, int, listOf, str } from "@nodeyard/driver";

const bootKeys = {
  kernel: str({
    description: "Kernel on this host that QEMU loads; absolute path.",
    default: "the disk's boot sector",
  }),
  initrd: str("Initial RAM disk that goes with `kernel`; absolute path."),
  "kernel-arguments": str({
    description: "Command line of `kernel`.",
    default: "console=ttyS0 root=/dev/vda rw",
  }),
};

const diskimage = closed(
  {
    name: str("A top-level diskimage."),
    pause: bool({ description: "No uploads to this provider.", default: false }),
    meta: dict("Kept beside the upload."),
    ...bootKeys,
    ...connectionKeys,
  },
  ["name"],
);

const cloudImage = closed(
  {
    name: str("Referred to by labels."),
    path: str("Absolute path of the image on this host; it is copied before its first use."),
    format: str("`qcow2` or `raw`; never guessed."),
    username: str("Login user."),
    "python-path": str({ description: "Ansible's interpreter.", default: "auto" }),
    "shell-type": str("Ansible's shell type."),
    ...bootKeys,
    ...connectionKeys,
  },
  ["name", "path", "format"],
);

const authorizedKeys = (by: string) =>
  listOf(str(), { description: "Lines of authorized_keys that may log in.", default: by });

const label = closed(
  {
    name: str("A top-level label."),
    diskimage: str("A `diskimages` entry of this provider; exactly one of this and `cloud-image`."),
    "cloud-image": str("A `cloud-images` entry of this provider; exactly one of this and `diskimage`."),
    cores: int({ description: "Virtual processors.", default: 1 }),
    ram: int({ description: "Memory of the guest.", default: 1024, unit: "MiB" }),
    disk: int({ description: "Size of the disk; not below the image's.", default: 10, unit: "GiB" }),
    seed: str({
      description:
        "`nocloud`: a disk that cloud-init reads. `fw_cfg`: only the files that every machine gets.",
      default: "nocloud",
    }),
    "saved-state": bool({
      description:
        "Machines go on from a state that one was saved in before it had keys or network, instead of booting. The image has to run the script that the seed then has.",
      default: false,
    }),
    "authorized-keys": authorizedKeys("the provider's"),
    userdata: str("User data for cloud-init, handed on as it is."),
    "console-log": bool({
      description: "Keep what a machine that does not come up wrote to its console.",
      default: false,
    }),
    "host-key-checking": bool({ description: "False: ready as soon as QEMU runs.", default: true }),
  },
  ["name"],
);

const pool = closed({
  ...commonPoolKeys,
  "max-cores": int({ description: "Virtual processors at once.", default: "no limit" }),
  "max-ram": int({ description: "Memory at once.", default: "no limit", unit: "MiB" }),
  labels: listOf(label, "What the pool offers."),
});

export const schema = closed(
  {
    folder: str("Absolute path of the folder for images and machines."),
    host: str({
      description:
        "Host name or machine id that the provider belongs to; launchers of other hosts refuse it.",
      default: "the first that opens the folder",
    }),
    user: str(
      "Who QEMU runs as when the launcher is root: a user of its own, in group `kvm` for KVM, or numbers (`uid:gid`). Needed then.",
    ),
    users: str(
      "Numbers that are nobody's, as in `200000-200999`: each machine runs as one of its own, so that a guest that breaks out of QEMU reaches no other machine. As many machines as there are numbers; needs root.",
    ),
    bridge: str(
      "A network, as in `10.93.0.0/24`: machines have addresses of it, behind a bridge in a network namespace of its own, and see this host alone. Clients are on this host, or have a route to it. Needs root, `user`, `nftables` and `iproute2`.",
    ),
    address: str({
      description: "Address of this host that clients reach the machines at.",
      default: "127.0.0.1",
    }),
    accelerator: str({
      description: "`auto`: KVM for the images that a probe boot under it proves. `kvm`, `tcg`: that one.",
      default: "auto",
    }),
    "probe-timeout": int({
      description: "For a probe boot under KVM to show a host key.",
      default: 60,
      unit: "s",
    }),
    network: str({
      description:
        "`restricted`: the machine only answers. `outbound`: it reaches all but this host; needs root and `user`.",
      default: "restricted",
    }),
    emulator: str({ description: "QEMU's program.", default: "qemu-system-x86_64" }),
    "max-vms": int({ description: "Machines at once in the folder.", default: "no limit" }),
    "max-cores": int({
      description: "Virtual processors at once in the folder.",
      default: "four per processor of the host",
    }),
    "max-ram": int({
      description: "Memory of all machines of the folder, QEMU's own included.",
      default: "the host's, less 1 GiB",
      unit: "MiB",
    }),
    "authorized-keys": authorizedKeys("none"),
    "boot-timeout": int({ description: "For a machine to answer once it is up.", default: 300, unit: "s" }),
    "launch-timeout": int({
      description: "From the start of a launch to a machine.",
      default: 600,
      unit: "s",
    }),
    "launch-retries": int({ description: "Attempts per node in all.", default: 3 }),
    "post-upload-hook": str("Program run after an upload: provider, image id and file as arguments."),
    "image-name-format": str({
      description: "Name of an uploaded image.",
      default: "{image_name}-{timestamp}",
    }),
    "image-upload-timeout": int({ description: "For one upload.", default: 3600, unit: "s" }),
    diskimages: listOf(diskimage, "Built images that this provider gets."),
    "cloud-images": listOf(cloudImage, "Images that are files of this host."),
    pools: listOf(pool, "What the provider offers, in pools."),
  },
  ["folder"],
);

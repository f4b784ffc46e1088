import { type ConfigOf, cloudConfig, Is, Key, type OwnOf, type Reader, type Values } from "@nodeyard/driver";
import { parseSubnet, type Subnet } from "./machine/bridge.ts";
import type { NumberRange } from "./machine/firewall.ts";

/** sshd(8), AUTHORIZED_KEYS: type, base64, comment. Lines with options are refused, because options decide what root may do in the guest. */
const KEY = /^(ssh-[a-z0-9-]+|ecdsa-sha2-[a-z0-9-]+|sk-[a-z0-9@.-]+) [A-Za-z0-9+/]+={0,2}( [\x20-\x7e]*)?$/;

/** Keys of a label. `authorized-keys` of the provider apply to labels without their own. */
const label = {
  "console-log": Key.consoleLog("Keep what a machine that does not come up wrote to its console."),
  cores: Key.integer("Virtual processors.", { default: 1, like: Is.whole(1, 4096) }),
  ram: Key.integer("Memory of the guest.", { default: 1024, unit: "MiB", like: Is.whole(1) }),
  disk: Key.integer("Size of the disk; not below the image's.", {
    default: 10,
    unit: "GiB",
    like: Is.whole(1),
  }),
  // How the guest gets its name and keys.
  seed: Key.choice(
    "`nocloud`: a disk that cloud-init reads. `fw_cfg`: only the files that every machine gets.",
    ["nocloud", "fw_cfg"],
  ),
  "saved-state": Key.flag(
    "Machines go on from a state that one was saved in before it had keys or network, instead of booting. The image has to run the script that the seed then has.",
    { default: false },
  ),
  "authorized-keys": Key.texts(
    "Lines of authorized_keys that may log in.",
    Key.inherited("the provider's"),
  ).map((lines, at) => lines && readKeys(lines, at)),
  userdata: Key.userData("User data for cloud-init, handed on as it is."),
  "host-key-checking": Key.flag("False: ready as soon as QEMU runs.", { default: true }),
};

/** A kernel that QEMU loads directly, instead of booting from the disk. */
const bootTable = {
  kernel: Key.text("Kernel on this host that QEMU loads; absolute path.", {
    shown: "the disk's boot sector",
    like: Is.ABSOLUTE,
  }).names("file"),
  initrd: Key.text("Initial RAM disk that goes with `kernel`; absolute path.", { like: Is.ABSOLUTE }).names(
    "file",
  ),
  "kernel-arguments": Key.text("Command line of `kernel`.", { default: "console=ttyS0 root=/dev/vda rw" }).as(
    "arguments",
  ),
};
/** The kernel's files; null when the machine boots from its disk. Arguments without a kernel have no effect. */
const boot = Key.group(bootTable).map((files, at): BootFiles | null => {
  if (files.kernel !== null) return { ...files, kernel: files.kernel };
  if (files.initrd !== null) at.error("initrd", "is there without a kernel; add kernel, or leave it out");
  return null;
});

/** An image file on this host. The format is never guessed: the content of a raw image could pretend to be any format. */
const fileTable = {
  path: Key.text("Absolute path of the image on this host; it is copied before its first use.", {
    needed: true,
    like: Is.ABSOLUTE,
  }).names("file"),
  format: Key.text("`qcow2` or `raw`; never guessed.", {
    needed: true,
    like: {
      ...Is.among(["qcow2", "raw"], "vmdk", ""),
      write: "qcow2 or raw, and convert anything else with qemu-img",
    },
  }).map((format): "qcow2" | "raw" => (format === "qcow2" ? format : "raw")),
};

/** Limits and most other keys describe the folder and the host rather than a pool. */
const provider = {
  ...Key.launchKeys({ launch: 600, boot: 300 }),
  ...Key.uploadKeys,
  "authorized-keys": Key.texts("Lines of authorized_keys that may log in.", { shown: "none" }).map(readKeys),
  folder: Key.text("Absolute path of the folder for images and machines.", {
    needed: true,
    like: Is.ABSOLUTE,
  }),
  host: Key.text(
    "Host name or machine id that the provider belongs to; launchers of other hosts refuse it.",
    {
      shown: "the first that opens the folder",
      like: Is.NOT_EMPTY,
    },
  ),
  user: Key.text(
    "User that QEMU runs as when the launcher is root, which is required then: a user without other processes, in group `kvm` for KVM, or numbers (`uid:gid`).",
    {
      like: Is.pattern("a user's name or numbers, as in 990:990", /^([a-z_][a-z0-9_.-]*\$?|\d+(:\d+)?)$/i, [
        ["ci", "990:990"],
        ["a b", ""],
      ]),
    },
  ),
  users: Key.text(
    "Range of user ids without users, such as `200000-200999`. Each machine runs under an id of its own, so that a guest that breaks out of QEMU reaches no other machine. The range limits the number of machines. Needs root.",
  ).map(readUsers),
  bridge: Key.text(
    "A network, as in `10.93.0.0/24`: machines have addresses of it, behind a bridge in a network namespace of its own, and see this host alone. Clients are on this host, or have a route to it. Needs root, `user`, `nftables` and `iproute2`.",
  ).map(readSubnet),
  address: Key.text("Address of this host that clients reach the machines at.", {
    default: "127.0.0.1",
    like: Is.HOST,
  }),
  accelerator: Key.choice(
    "`auto`: KVM for the images that a probe boot under it proves. `kvm`, `tcg`: that one.",
    ["auto", "kvm", "tcg"],
  ),
  "probe-timeout": Key.seconds("For a probe boot under KVM to show a host key.", {
    default: 60,
    like: Is.ABOVE_0,
  }).as("probeTimeoutMs"),
  network: Key.choice(
    "`restricted`: the machine only answers. `outbound`: it reaches all but this host; needs root and `user`.",
    ["restricted", "outbound"],
  ).map((network, at) => {
    // Without a user of its own, rules of the firewall could not tell QEMU's packets from the launcher's.
    if (network === "outbound" && !at.has("user"))
      at.error("network", "is outbound, which tells the machines' packets by their user; add user");
    return network;
  }),
  emulator: Key.text("QEMU's program.", { default: "qemu-system-x86_64", like: Is.NOT_EMPTY }),
  limits: Key.group({
    "max-vms": Key.integer("Machines at once in the folder.", { ...Key.NO_LIMIT, like: Is.whole(1) }).as(
      "instances",
    ),
    "max-cores": Key.integer("Virtual processors at once in the folder.", {
      default: null,
      shown: "four per processor of the host",
      like: Is.whole(1),
    }).as("cores"),
    "max-ram": Key.integer("Memory of all machines of the folder, QEMU's own included.", {
      default: null,
      shown: "the host's, less 1 GiB",
      like: Is.whole(1),
      unit: "MiB",
    }).as("ram"),
  }),
};

/** An image file that a `cloud-images` entry names. */
export type FileImage = Values<typeof fileTable>;
/** A kernel with its initial RAM disk, if it has one, and its command line. Paths are those of the host's files, not of the copies. */
export interface BootFiles extends Values<typeof bootTable> {
  readonly kernel: string;
}

/** The keys of a qemu provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const qemuConfig = cloudConfig(
  "qemu",
  {
    ...{ provider, label },
    pool: { limits: Key.limits(Key.sizeLimits) },
    images: {
      diskimage: { meta: Key.mapping("Kept beside the upload.").unread(), boot },
      cloudImage: { file: Key.group(fileTable), boot },
      ...{ listed: "Images that are files of this host.", oneNeeded: true },
    },
  },
  {
    images: {
      // Without a file the label boots an uploaded image; without `boot`, from the disk.
      none: { file: null, boot: null } as {
        readonly file: FileImage | null;
        readonly boot: BootFiles | null;
      },
      diskimage: (of) => ({ ...of, file: null }),
      cloudImage: (of) => of,
    },
    label({ at, own }, _pool, { own: provider }) {
      if (own.savedState && provider.bridge !== null)
        at.error(
          "saved-state",
          "cannot be had with bridge: guests that go on keep the hardware address that was saved",
        );
      return { own: { ...own, authorizedKeys: own.authorizedKeys ?? provider.authorizedKeys } };
    },
  },
);

/** A compiled provider of the qemu driver. All providers with the same folder share one host and one set of limits. */
export type QemuProviderConfig = ConfigOf<typeof qemuConfig>;
export type QemuProviderOwn = OwnOf<typeof qemuConfig, "provider">;
export type QemuLabelOwn = OwnOf<typeof qemuConfig, "label">;
/** A compiled pool of the qemu driver. */
export type QemuPoolConfig = QemuProviderConfig["pools"][number];

/** Keys that may be written into a guest's authorized_keys; other lines are errors. */
function readKeys(lines: readonly string[], at: Reader): readonly string[] {
  return lines.flatMap((line, index) => {
    if (KEY.test(line.trim())) return [line.trim()];
    at.error("authorized-keys", `has no public key as entry ${index}; write "<type> <base64> [comment]"`);
    return [];
  });
}

/** "first-last"; null: all machines run as `user`. */
function readUsers(text: string | null, at: Reader): NumberRange | null {
  if (text === null) return null;
  const [, first, last] = (/^(\d{1,9})-(\d{1,9})$/.exec(text) ?? []).map(Number);
  if (first === undefined || last === undefined || first < 1000 || last < first) {
    at.error("users", `is ${text}; write two numbers from 1000 on, as in 200000-200999`);
    return null;
  }
  if (!at.has("user")) at.error("users", "needs user, whose group reads the images; add user");
  return { first, last };
}

/** Null: machines are reached through ports of `address`. */
function readSubnet(text: string | null, at: Reader): Subnet | null {
  if (text === null) return null;
  const subnet = parseSubnet(text);
  if (subnet === undefined)
    at.error("bridge", `is ${text}; write a network, as in 10.93.0.0/24, from /18 to /29`);
  if (!at.has("user")) at.error("bridge", "needs user, whose programs may open the machines' ends; add user");
  return subnet ?? null;
}

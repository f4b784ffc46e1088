import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { chmod, copyFile, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { libraries, madeOnce, output } from "../qemu/index.ts";

const INIT = readFileSync(fileURLToPath(new URL("./init.sh", import.meta.url)));
/** As this process has loaded it: an edit while it runs would give the image of before the name of the one after. */
const RECIPE = readFileSync(import.meta.filename);
const PROGRAMS = ["/usr/sbin/dropbear", "/usr/bin/dropbearkey"];
const FOLDERS = [
  "bin",
  "sbin",
  "dev",
  "etc",
  "proc",
  "sys",
  "root/.ssh",
  "home/ubuntu/.ssh",
  "run",
  "tmp",
  "var/run",
];
/** What busybox's DHCP client does with an address. */
const DHCP = `#!/bin/sh
case $1 in bound) ip addr add "$ip/$mask" dev "$interface"; ip route add default via "$router" ;; esac
`;

/** LXD fills in templates when it makes a container: here the user data for cloud-init. */
const METADATA = `architecture: x86_64
creation_date: 1
templates:
  /etc/user-data: { when: [create, copy], template: user-data }
`;
const TEMPLATE = '{{ config_get("cloud-init.user-data", "") }}';

export interface LxdImage {
  /** The tree of files alone, as a builder makes it. */
  readonly rootfs: string;
  /** The same as an image of LXD, with metadata. */
  readonly unified: string;
}

/** A system of busybox and dropbear that answers SSH in a container, in a folder for temporary files; made once. */
export async function lxdImage(): Promise<LxdImage> {
  const key = createHash("sha256").update(INIT).update(RECIPE);
  const folder = await madeOnce(`nodeyard-lxd-image-${key.digest("hex").slice(0, 16)}`, async (draft) => {
    const root = join(draft, "rootfs");
    for (const name of FOLDERS) await mkdir(join(root, name), { recursive: true });
    await copyFile("/usr/bin/busybox", join(root, "bin/busybox"));
    for (const name of (await output("busybox", ["--list"])).trim().split("\n"))
      if (name !== "busybox") await symlink("busybox", join(root, "bin", name));
    for (const program of PROGRAMS) {
      await copyFile(program, join(root, "bin", basename(program)));
      for (const library of await libraries(program)) {
        await mkdir(dirname(join(root, library)), { recursive: true });
        await copyFile(library, join(root, library));
      }
    }
    await writeFile(join(root, "sbin/init"), INIT);
    await writeFile(join(root, "etc/udhcpc"), DHCP);
    for (const script of ["sbin/init", "etc/udhcpc"]) await chmod(join(root, script), 0o755);
    const users = ["root:x:0:0:root:/root:/bin/sh", "ubuntu:x:0:0:ubuntu:/home/ubuntu:/bin/sh"];
    await writeFile(join(root, "etc/passwd"), `${users.join("\n")}\n`);
    await writeFile(join(root, "etc/shells"), "/bin/sh\n");
    await writeFile(join(draft, "metadata.yaml"), METADATA);
    await mkdir(join(draft, "templates"));
    await writeFile(join(draft, "templates/user-data"), TEMPLATE);
    await output("tar", ["-C", root, "-cf", join(draft, "rootfs.tar"), "."]);
    await output("tar", [
      "-C",
      draft,
      "-cf",
      join(draft, "unified.tar"),
      "metadata.yaml",
      "templates",
      "rootfs",
    ]);
    await rm(root, { recursive: true });
  });
  return { rootfs: join(folder, "rootfs.tar"), unified: join(folder, "unified.tar") };
}

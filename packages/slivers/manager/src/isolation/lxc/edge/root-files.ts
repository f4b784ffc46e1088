import { generateKeyPairSync } from "node:crypto";
import { chmod, chown, lchown, lstat, mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { whole } from "@nodeyard/runtime";
import type { SliverConfig } from "../../../core/plan.ts";
import { ImageError } from "../../../errors.ts";
import { replaceHostile, together, writeAtomic } from "../../edge/files.ts";
import { resolverText } from "../../network/edge/host-network.ts";
import { type AccountFiles, KEPT_HOME } from "../../storage/edge/jail.ts";
import { exists } from "../../storage/edge/pool.ts";
import {
  authorizedKeys,
  HOST_KEY,
  initScript,
  loginLines,
  nameFiles,
  openSshPrivateKey,
  sshdConfig,
  sudoersLine,
  withLine,
} from "../inner-files.ts";
import type { Bind } from "../lxc-config.ts";
import { LOGIN_ID, type Names } from "../names.ts";
import type { Mark } from "./sliver-folders.ts";

/** A file of settings longer than this is written again without a look, bytes. */
const MOST = 1_048_576;

/** Folders of the host that account slivers see: programs and their data, but nothing about the host's users. */
const SEEN: readonly string[] = [
  "usr",
  "bin",
  "sbin",
  "lib",
  "lib32",
  "lib64",
  "etc/alternatives",
  "etc/bash.bashrc",
  "etc/ca-certificates",
  "etc/ld.so.cache",
  "etc/ld.so.conf",
  "etc/ld.so.conf.d",
  "etc/localtime",
  "etc/profile",
  "etc/protocols",
  "etc/services",
  "etc/ssl/certs",
  "etc/ssl/openssl.cnf",
  "etc/terminfo",
];

/** The host's folders to mount in an account sliver. A link at the top level becomes a link in the sliver's root. */
export async function hostBinds(): Promise<Bind[]> {
  const binds: Bind[] = [];
  for (const to of SEEN) {
    const info = await lstat(`/${to}`).catch(() => undefined);
    if (info === undefined || (info.isSymbolicLink() && !to.includes("/"))) continue;
    const kind = info.isDirectory() ? "dir" : "file";
    binds.push({ from: `/${to}`, to, kind, locked: `/${to.split("/")[0]}` });
  }
  return binds;
}

/**
 * Makes the writable part of an account sliver's root: empty folders, where the host's are mounted, and accounts of its own. The
 * subvolume must be new. A host whose /bin and /lib are links into /usr gets the same links here.
 */
export async function makeAccountRoot(root: string, names: Names): Promise<void> {
  for (const folder of ["dev", "etc", "home", "proc", "root", "run", "sys", "usr", "var", "var/empty"])
    await mkdir(join(root, folder), { mode: folder === "root" ? 0o700 : 0o755 });
  for (const folder of ["tmp", "var/tmp"]) {
    await mkdir(join(root, folder));
    await chmod(join(root, folder), 0o1777);
  }
  for (const name of SEEN) {
    const info = await lstat(`/${name}`).catch(() => undefined);
    if (info?.isSymbolicLink() === true && !name.includes("/"))
      await symlink(`usr/${name}`, join(root, name));
  }
  const { passwd, group } = loginLines(names.user);
  const files: Record<string, string> = {
    passwd: `root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n${passwd}\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`,
    group: `root:x:0:\ntty:x:5:\n${group}\nnogroup:x:65534:\n`,
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, "etc", name), text);
  await common(root, names);
}

/** Adds the login to the copy of an image. At this time nothing runs in it, and none of its files is read. Throws ImageError. */
export async function fitImageRoot(root: string, names: Names, accounts: AccountFiles): Promise<void> {
  const logins = Object.entries(loginLines(names.user)).map(async ([file, line]) => {
    const path = await within(root, `etc/${file}`);
    const had = accounts[file];
    if (had === undefined && file === "shadow") return;
    if (had === undefined)
      throw new ImageError(`the image has no /etc/${file} that is a regular file of at most 128 KiB`);
    await replaceHostile(path, withLine(had.text, line), had.mode);
    await lchown(path, 0, had.group);
  });
  await together(...logins, sudoers(root, names), common(root, names));
}

/** What engines of containers do not find out by themselves in a sliver. */
const ENGINE_FILES = {
  // On btrfs dockerd would make subvolumes, which have no limit of disk and are refused.
  "etc/docker/daemon.json": '{ "storage-driver": "overlay2" }\n',
  // podman and buildah use no image without one; this is Debian's.
  "etc/containers/policy.json": '{ "default": [{ "type": "insecureAcceptAnything" }] }\n',
} as const;

/** Settings of dockerd, podman and buildah, in a root in which nothing runs yet. An image's own files stay. Throws ImageError. */
export async function fitEngines(root: string): Promise<void> {
  for (const [path, text] of Object.entries(ENGINE_FILES)) {
    await mkdir(await within(root, dirname(path)), { recursive: true });
    const file = join(root, path);
    if ((await lstat(file).catch(() => undefined)) === undefined) await replaceHostile(file, text);
  }
}

/** Lets the login become root, in images that have sudo; in others there is nothing to do. */
async function sudoers(root: string, { user }: Names): Promise<void> {
  const folder = await within(root, "etc/sudoers.d").catch(() => undefined);
  if (folder === undefined || !(await exists(folder))) return;
  await replaceHostile(join(folder, "nodeyard"), sudoersLine(user), 0o440);
}

/** What every root gets: host name, resolver, the folder for /etc/nodeyard and the login's home. */
async function common(root: string, { user, address }: Names): Promise<void> {
  const { hostname, hosts } = nameFiles(user, address);
  const texts: Record<string, string> = {
    hostname,
    hosts,
    "resolv.conf": await resolverText(),
  };
  // Images may have links at these names, for instance to files of a resolver. Links of an image are never followed.
  const etc = await within(root, "etc");
  for (const [name, text] of Object.entries(texts)) await replaceHostile(join(etc, name), text);
  await mkdir(await within(root, "etc/nodeyard"), { recursive: true });
  const home = await within(root, `home/${user}`);
  const kept = join(root, "home", KEPT_HOME);
  // Of a sliver that the image was made of.
  if ((await lstat(kept).catch(() => undefined))?.isDirectory() === true && !(await exists(home)))
    await rename(kept, home);
  await mkdir(home, { recursive: true });
  await lchown(home, LOGIN_ID, LOGIN_ID);
  await chmod(home, 0o700);
}

/** A path in a root; throws when a part of it is a link, because links of an image may point anywhere. Throws ImageError. */
async function within(root: string, path: string): Promise<string> {
  let at = root;
  for (const part of path.split("/")) {
    at = join(at, part);
    if ((await lstat(at).catch(() => undefined))?.isSymbolicLink() === true)
      throw new ImageError(`/${path} of the image must not be a symbolic link`);
  }
  return at;
}

/** The folder for /etc/nodeyard. It belongs to the sliver's root user, because sshd refuses files of other owners. */
async function makeEtc(etc: string, { idBase }: Names): Promise<void> {
  await mkdir(etc, { recursive: true, mode: 0o755 });
  await chown(etc, idBase, idBase);
}

/**
 * Makes the sliver's own host key. With a shared key a client could not tell which sliver answers. A key that is there stays, so that a
 * repeated create changes nothing that a client has seen.
 */
export async function makeSecrets(etc: string, names: Names): Promise<void> {
  await makeEtc(etc, names);
  const file = join(etc, HOST_KEY);
  if (await exists(file)) return;
  const { d, x } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const [seed, publicKey] = [d, x].map((value) => Buffer.from(value!, "base64url"));
  await writeAtomic(file, openSshPrivateKey(seed!, publicKey!, names.user), {
    mode: 0o600,
    owner: names.idBase,
  });
}

/**
 * Writes files that are read at each login and start. They are written before each start, so they need not be durable. Equal files are
 * left alone. A disabled sliver has an empty authorized_keys.
 */
export async function writeSettings(
  etc: string,
  root: Mark["root"],
  names: Names,
  { enabled, keys, initscript, limits, nesting }: SliverConfig,
): Promise<void> {
  // In an account sliver sudo does not work: its file belongs to the host's root. Engines of containers need the sliver's root.
  const logins = root === "account" && nesting !== true ? [names.user] : [names.user, "root"];
  const files: readonly (readonly [string, string])[] = [
    ["authorized_keys", enabled ? authorizedKeys(keys) : ""],
    ["sshd_config", sshdConfig(logins, limits)],
    ["init", initScript(names.user, limits, nesting === true)],
    ["initscript", initscript],
  ];
  await together(
    ...files.map(async ([name, text]) => {
      const path = join(etc, name);
      if ((await whole(path, MOST)) === text) return;
      await writeAtomic(path, text, { mode: 0o644, owner: names.idBase, durable: false });
    }),
  );
}

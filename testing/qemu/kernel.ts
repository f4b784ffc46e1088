import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { output, pipe } from "./run.ts";

/** The package with the newest kernel for virtual machines. */
export async function kernelName(): Promise<string> {
  const text = await output("apt-cache", ["depends", "linux-image-cloud-amd64"]);
  const [, name] = /Depends: (linux-image-\S+)/.exec(text) ?? [];
  if (name === undefined) throw new Error("apt knows no linux-image-cloud-amd64; run apt-get update");
  return name;
}

/** Puts the package's kernel into `folder` as `kernel`, and returns the folder with the rest of the package. */
export async function unpackKernel(folder: string, kernelPackage: string): Promise<string> {
  await output("apt-get", ["-q", "download", kernelPackage], { cwd: folder });
  const archive = (await readdir(folder)).find((name) => name.endsWith(".deb"));
  await output("dpkg-deb", ["-x", archive ?? "", "system"], { cwd: folder });
  const system = join(folder, "system");
  const [kernel] = (await readdir(join(system, "boot"))).filter((name) => name.startsWith("vmlinuz"));
  await copyFile(join(system, "boot", kernel ?? ""), join(folder, "kernel"));
  await rm(join(folder, archive ?? ""));
  return system;
}

/** Copies modules to `<root>/modules`, in the given order, in which they depend on each other. Built-in ones have no file. */
export async function copyModules(system: string, names: readonly string[], root: string): Promise<void> {
  for (const [at, module] of names.entries()) {
    const [file] = (await output("find", [system, "-name", `${module}.ko`])).split("\n");
    if (file) await copyFile(file, join(root, "modules", `${String(at).padStart(2, "0")}-${module}.ko`));
  }
}

/** Makes an initial RAM disk of `root`, and removes `root`. */
export async function packRoot(root: string, init: string, file: string): Promise<void> {
  await copyFile(init, join(root, "init"));
  await chmod(join(root, "init"), 0o755);
  await mkdir(join(root, "bin"), { recursive: true });
  await copyFile("/usr/bin/busybox", join(root, "bin/busybox"));
  // The interpreter of the script; busybox selects its applet by this name.
  await output("ln", ["-s", "busybox", join(root, "bin/sh")]);
  const files = await output("find", ["."], { cwd: root });
  await pipe("cpio", ["-o", "-H", "newc", "--quiet", "-R", "0:0"], files, file, root);
  await rm(root, { recursive: true });
}

/** Makes a temporary folder that is complete or absent; if several processes make it at once, the first wins. */
export async function madeOnce(name: string, make: (draft: string) => Promise<void>): Promise<string> {
  const folder = join(tmpdir(), name);
  if (existsSync(folder)) return folder;
  const draft = await mkdtemp(`${folder}.`);
  try {
    await chmod(draft, 0o755);
    await make(draft);
    await rename(draft, folder).catch((error) => {
      // Another test made it meanwhile.
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return folder;
}

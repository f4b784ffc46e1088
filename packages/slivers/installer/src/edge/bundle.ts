import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { arch } from "node:os";
import { basename, dirname, join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { SliverHostError } from "../errors.ts";
import type { Bundle } from "../remote.ts";

/** Output of `uname -m`, by Node's name of the architecture. */
const MACHINES: Readonly<Record<string, string>> = {
  x64: "x86_64",
  arm64: "aarch64",
  ppc64: "ppc64le",
  s390x: "s390x",
};

/** Where the programs are that an enrolment copies to a machine. */
export interface BundlePaths {
  /** Option `--bundle`. */
  readonly folder: string | undefined;
  /** Option `--node-runtime`, and the output of `uname -sm` on machines where it runs. Absent: the Node that runs this program. */
  readonly runtime: { readonly path: string; readonly platform: string } | undefined;
}

/**
 * Finds the programs for a sliver host: in a checkout after `npm run build`, or in the installed package. The digest is that of the
 * list of programs, which names each with its own; so equal digests mean equal programs. Throws SliverHostError.
 */
export function openBundle({ folder, runtime }: BundlePaths): Bundle {
  const place = folder ?? besides();
  const list = place === undefined ? undefined : join(place, "bundle.json");
  if (place === undefined || list === undefined || !existsSync(list))
    throw new SliverHostError(
      `there is no bundle of sliverd${place === undefined ? "" : ` in ${place}`}: install @nodeyard/sliver beside nodeyard, run "npm run build" in a checkout, or name it with --bundle`,
    );
  const node = runtime?.path ?? process.execPath;
  const platform = runtime?.platform ?? `Linux ${MACHINES[arch()] ?? arch()}`;
  return {
    digest: createHash("sha256").update(readFileSync(list)).digest("hex"),
    runtimeSize: statSync(node).size,
    platform,
    open: () => archive(place, node),
  };
}

/** The folder of the programs beside the installed package. */
function besides(): string | undefined {
  try {
    // The package's `src/index`. In a checkout the built files are one folder further down.
    const root = join(dirname(fileURLToPath(import.meta.resolve("@nodeyard/sliver"))), "..");
    return [join(root, "bundle"), join(root, "dist/bundle")].find((path) => existsSync(path));
  } catch {
    // The package is not installed.
    return undefined;
  }
}

/** The archive to copy. The runtime is renamed to `node` in it. */
function archive(folder: string, node: string): Readable {
  const name = basename(node);
  if (!/^[A-Za-z0-9._-]+$/.test(name))
    throw new SliverHostError(`a runtime called ${JSON.stringify(name)} cannot be copied`);
  const renamed = ["--transform", `s,^${name.replaceAll(".", "\\.")}$,node,`];
  // Compression level 1: three times as fast as the default, and only a tenth larger.
  const words = [
    "-c",
    "-I",
    "gzip -1",
    "--owner=0",
    "--group=0",
    ...renamed,
    "-C",
    folder,
    ".",
    "-C",
    dirname(node),
    name,
  ];
  const child = spawn("tar", words, { stdio: ["ignore", "pipe", "pipe"] });
  const out = new PassThrough();
  let err = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err = (err + text).slice(-1_000);
  });
  child.on("error", (cause) => out.destroy(cause));
  child.stdout.pipe(out, { end: false });
  child.on("close", (code) => {
    if (code === 0) out.end();
    else out.destroy(new SliverHostError(`tar: ${err.trim() || `exit code ${code}`}`));
  });
  return out;
}

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Plugin, rolldown } from "rolldown";

/** Programs of the sliver package that run on machines without any other part of Nodeyard. */
const PROGRAMS = ["sliverd", "sliver-forward", "sliver-enrol", "sliver-reader", "sliver-runner"] as const;

/** Where an installed bundle is (packages/slivers/manager/src/enrol/parts.ts). */
const PLACE = "/usr/lib/nodeyard-sliverd/current";

/**
 * Each program of a sliver host as one file that needs only Node, in `folder`, with a list of their digests. The runtime is not part of the
 * bundle: the installation adds the one for the machine. Throws if a program does not run.
 */
export async function bundle(root: string, folder: string): Promise<string> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const digests: Record<string, string> = {};
  for (const program of PROGRAMS) {
    const text = await oneFile(join(root, "packages/slivers/manager/src/bin", `${program}.ts`));
    const name = `${program}.mjs`;
    writeFileSync(join(folder, name), text, { mode: 0o755 });
    digests[name] = createHash("sha256").update(text).digest("hex");
    // By its final path, so that a forced command and a unit name one program, with its runtime.
    const command = `#!/bin/sh\nexec ${PLACE}/node --disable-warning=ExperimentalWarning --max-semi-space-size=2 ${PLACE}/${name} "$@"\n`;
    writeFileSync(join(folder, program), command, { mode: 0o755 });
    digests[program] = createHash("sha256").update(command).digest("hex");
  }
  const { version } = JSON.parse(
    readFileSync(join(root, "packages/slivers/manager/package.json"), "utf8"),
  ) as {
    version: string;
  };
  writeFileSync(
    join(folder, "bundle.json"),
    `${JSON.stringify({ v: 1, version, files: digests }, null, 2)}\n`,
  );
  return folder;
}

/** Installed by who wants traces; without a collector nothing loads them. */
const EXTERNAL = [/^@opentelemetry\//];

/** One file: the second of two that share JSON would import missing names. */
async function oneFile(input: string): Promise<string> {
  // What a program starts by its URL is beside it, as a file of its own.
  const startsBundled: Plugin = {
    name: "starts-bundled",
    transform: (code) =>
      code.replace(/(new URL\(")\.{1,2}\/(?:[./]*bin\/)?(sliver-[a-z]+)\.ts"/g, '$1./$2.mjs"'),
  };
  const plugins = [startsBundled];
  const build = await rolldown({ input, external: EXTERNAL, platform: "node", logLevel: "warn", plugins });
  try {
    const { output } = await build.generate({ format: "esm", codeSplitting: false });
    if (output.length !== 1) throw new Error(`${input} became ${output.length} files`);
    return output[0].code;
  } finally {
    await build.close();
  }
}

/** Runs each program where no package of ours can be found. */
export function verifyBundle(folder: string, work: string): string[] {
  const empty = mkdtempSync(join(work, "bundle-"));
  try {
    const { version, files } = JSON.parse(readFileSync(join(folder, "bundle.json"), "utf8")) as {
      version: string;
      files: Record<string, string>;
    };
    const there = readdirSync(folder).filter((name) => name.endsWith(".mjs"));
    if (there.length === 0 || there.some((name) => files[name] === undefined))
      throw new Error(`${folder} holds ${there.join(", ")}`);
    return there.map((name) => {
      const copy = join(empty, name);
      writeFileSync(copy, readFileSync(join(folder, name)));
      const said = execFileSync(process.execPath, [copy, "--version"], { cwd: empty, encoding: "utf8" });
      if (!said.includes(version)) throw new Error(`${name} --version says ${JSON.stringify(said)}`);
      return `${name} alone`;
    });
  } finally {
    rmSync(empty, { recursive: true, force: true });
  }
}

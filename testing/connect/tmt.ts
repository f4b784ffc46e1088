import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { requireTools } from "../skipped.ts";
import { requireSshd } from "../sshd/index.ts";
import { adopt } from "../zookeeper/children.ts";

/** For `describe.skipIf(requireTmt())`: why the real tmt cannot run here, or undefined. */
export const requireTmt = () =>
  requireSshd() ?? requireTools("tests with the real tmt", "python3", "/usr/share/doc/python3-venv", "rsync");

let program: string | undefined;

/** Its path; installed from PyPI the first time. */
export function tmtProgram(): string {
  if (program === undefined) {
    const { status, stdout, stderr } = spawnSync(join(import.meta.dirname, "tmt.sh"), { encoding: "utf8" });
    if (status !== 0) throw new Error(`cannot install tmt: ${stderr}`);
    program = stdout.trim();
  }
  return program;
}

/**
 * Lines of sshd_config for a guest that is this machine: tmt makes sure of its packages by apt and apt-file, which must change nothing here, and
 * finds that they are there.
 */
export function guestConfig(folder: string): readonly string[] {
  const programs = join(folder, "programs");
  mkdirSync(programs);
  for (const [name, line] of [
    ["apt", "exit 0"],
    ["apt-file", "echo util-linux"],
  ] as const)
    writeFileSync(join(programs, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  return [`SetEnv HOME=${folder} PATH=${programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`];
}

/**
 * Name of the folder of a run. tmt shares one connection for a guest unless the path of its socket would be too long; when that connection is not there
 * at once, it looks again after 30 s, three times in a run.
 */
export const RUN = `run-without-a-shared-connection-${"-".repeat(60)}`;

/** A run of the real tmt. */
export interface TmtRun {
  /** What it has printed so far. */
  said(): string;
  readonly ended: Promise<{ readonly code: number | null; readonly said: string }>;
  kill(signal: NodeJS.Signals): void;
}

/** A folder with a plan and a test, which tmt runs by provisioning with `provision`. */
export class TmtTree {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(join(folder, "tree/.fmf"), { recursive: true });
    writeFileSync(join(folder, "tree/.fmf/version"), "1\n");
  }

  run(provision: object, script: string): TmtRun {
    const discover = { how: "shell", tests: [{ name: "one", test: script }] };
    writeFileSync(
      join(this.folder, "tree/plan.fmf"),
      stringify({ provision, discover, execute: { how: "tmt" } }),
    );
    const child = spawn(
      tmtProgram(),
      ["-c", "trigger=test", "run", "--all", "-vv", "--id", join(this.folder, RUN), "--scratch"],
      {
        cwd: join(this.folder, "tree"),
        // Its helper scripts go there instead of /usr/local/bin of the guest, which is this machine.
        env: { ...process.env, TMT_SCRIPTS_DIR: join(this.folder, "scripts"), NO_COLOR: "1" },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (part: string) => {
        said += part;
      });
    const ended = adopt(child).then(() => ({ code: child.exitCode, said }));
    return { said: () => said, ended, kill: (signal) => void child.kill(signal) };
  }
}

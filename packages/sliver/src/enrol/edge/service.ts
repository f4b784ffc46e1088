import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Clock } from "@nodeyard/runtime";
import { sleep } from "@nodeyard/runtime";
import { run } from "../../isolation/edge/run.ts";
import { EnrolError } from "../errors.ts";
import { LAYOUT } from "../layout.ts";
import { hasSystemd, textAt } from "./look.ts";

const UNIT = "nodeyard-sliverd.service";
/** Milliseconds that a daemon has to end. */
const END_MS = 30_000;
const LOOK_MS = 50;

/** The daemon as a service: of systemd, or, where that does not run, as a process on its own. */
export const service = {
  async running(signal: AbortSignal): Promise<boolean> {
    if (!hasSystemd()) return plainPid() !== undefined;
    return run(["systemctl", "is-active", "--quiet", UNIT], { signal }).then(
      () => true,
      () => false,
    );
  },

  async start(signal: AbortSignal): Promise<void> {
    if (!hasSystemd()) return startPlain();
    await run(["systemctl", "daemon-reload"], { signal });
    await run(["systemctl", "restart", UNIT], { signal });
  },

  async stop(clock: Clock, signal: AbortSignal): Promise<void> {
    if (hasSystemd()) {
      // One that fails and is started again and again is not active either, and has to end as well.
      if (existsSync(LAYOUT.unit) || (await service.running(signal)))
        await run(["systemctl", "stop", UNIT], { signal });
      return;
    }
    const pid = plainPid();
    if (pid === undefined) return;
    process.kill(pid, "SIGTERM");
    for (let waited = 0; plainPid() !== undefined; waited += LOOK_MS) {
      if (waited > END_MS) throw new EnrolError(`sliverd (process ${pid}) does not end; end it by hand`);
      await sleep(clock, LOOK_MS, signal);
    }
    rmSync(LAYOUT.pid, { force: true });
  },

  async forget(signal: AbortSignal): Promise<void> {
    if (hasSystemd()) await run(["systemctl", "daemon-reload"], { signal });
  },

  /** How it comes back after a boot. */
  atBoot(): string {
    return hasSystemd()
      ? `${UNIT} is enabled`
      : `no systemd here: have your init run ${LAYOUT.current}/sliverd --config ${LAYOUT.config}`;
  },
};

/** Its process, when it is one of ours still: a number alone may be anybody's by now. */
function plainPid(): number | undefined {
  const pid = Number(textAt(LAYOUT.pid) ?? "");
  if (!Number.isInteger(pid) || pid <= 1) return undefined;
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return words.includes("sliverd") && words.includes(LAYOUT.config) ? pid : undefined;
  } catch {
    return undefined;
  }
}

function startPlain(): void {
  const log = openSync(LAYOUT.log, "a", 0o600);
  try {
    const child = spawn(`${LAYOUT.current}/sliverd`, ["--config", LAYOUT.config], {
      detached: true,
      stdio: ["ignore", log, log],
      cwd: "/",
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
    });
    if (child.pid === undefined) throw new EnrolError(`${LAYOUT.current}/sliverd cannot be started`);
    writeFileSync(LAYOUT.pid, `${child.pid}\n`);
    child.unref();
  } finally {
    closeSync(log);
  }
}

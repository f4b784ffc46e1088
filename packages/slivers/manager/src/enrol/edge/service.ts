import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { type Clock, messageOf, sleep, succeeds, textIfExists } from "@nodeyard/runtime";
import { CONTROL_USER } from "@nodeyard/sliver-protocol";
import { EnrolError } from "../../errors.ts";
import { writeAtomic } from "../../isolation/edge/files.ts";
import { PATH, run } from "../../isolation/edge/run.ts";
import { LAYOUT } from "../parts.ts";
import { hasSystemd, uidOf } from "./look.ts";

const UNIT = "nodeyard-sliverd.service";
const SSHD_PID = "/run/sshd.pid";
/** Time limit for the daemon to end, and for sshd to listen again, milliseconds. */
const END_MS = 30_000;
const LOOK_MS = 50;

/** The daemon as a service of systemd or, without systemd, as a process of its own. */
export const service = {
  /** With systemd only an active unit counts, not one that fails and is started again. */
  async running(signal: AbortSignal): Promise<boolean> {
    if (!hasSystemd()) return plainPid() !== undefined;
    return succeeds(run(["systemctl", "is-active", "--quiet", UNIT], { signal }));
  },

  /** Starts it, or starts it again. Throws CommandError; whether it answers is for the caller to see. */
  async start(signal: AbortSignal): Promise<void> {
    if (!hasSystemd()) return startPlain();
    await run(["systemctl", "daemon-reload"], { signal });
    await run(["systemctl", "restart", UNIT], { signal });
  },

  async stop(clock: Clock, signal: AbortSignal): Promise<void> {
    if (hasSystemd()) {
      // A unit that fails and is restarted again and again is not active, but must be stopped as well.
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

  /** After the unit's file is gone. */
  async forget(signal: AbortSignal): Promise<void> {
    if (hasSystemd()) await run(["systemctl", "daemon-reload"], { signal });
  },

  /** How the daemon starts after a boot, for the operator. */
  atBoot(): string {
    return hasSystemd()
      ? `${UNIT} is enabled`
      : `no systemd here: have your init run ${LAYOUT.current}/sliverd --config ${LAYOUT.config}`;
  },
};

/** The daemon's process id, if that process is still the daemon: ids are reused. */
function plainPid(): number | undefined {
  const pid = Number(textIfExists(LAYOUT.pid) ?? "");
  if (!Number.isInteger(pid) || pid <= 1) return undefined;
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return words.includes("sliverd") && words.includes(LAYOUT.config) ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Without systemd: in a session of its own, so that it survives the login that started it. */
function startPlain(): void {
  const log = openSync(LAYOUT.log, "a", 0o600);
  try {
    const child = spawn(`${LAYOUT.current}/sliverd`, ["--config", LAYOUT.config], {
      detached: true,
      stdio: ["ignore", log, log],
      cwd: "/",
      env: { PATH, LC_ALL: "C" },
    });
    if (child.pid === undefined) throw new EnrolError(`${LAYOUT.current}/sliverd cannot be started`);
    writeFileSync(LAYOUT.pid, `${child.pid}\n`);
    child.unref();
  } finally {
    closeSync(log);
  }
}

/**
 * Why the control account cannot log in with the present configuration of sshd, and the remedy. Throws EnrolError when sshd refuses its
 * files.
 */
export async function wrongSshd(signal: AbortSignal): Promise<string | undefined> {
  // sshd -T requires this folder, which the service would make.
  const folder = existsSync("/run/sshd") ? [] : [run(["mkdir", "-p", "-m", "0755", "/run/sshd"], { signal })];
  await Promise.all(folder);
  const about = `user=${CONTROL_USER},host=localhost,addr=127.0.0.1`;
  const text = await run(["/usr/sbin/sshd", "-T", "-C", about], { signal }).catch((cause) => {
    throw new EnrolError(`sshd refuses its configuration: ${messageOf(cause)}`, { cause });
  });
  if (text.split("\n").includes(`authorizedkeysfile ${LAYOUT.keysFile}`)) return undefined;
  return `sshd does not read ${LAYOUT.sshd}: put "Include /etc/ssh/sshd_config.d/*.conf" at the top of /etc/ssh/sshd_config and reload it`;
}

/** Reloads sshd. Sessions continue. Returns what remains to be done by hand. */
export async function reloadSshd(clock: Clock, signal: AbortSignal): Promise<readonly string[]> {
  const left = await reload(clock, signal);
  const text = textIfExists(LAYOUT.sshd);
  if (left.length === 0 && text !== undefined) await writeAtomic(LAYOUT.sshdLoaded, text, { mode: 0o600 });
  return left;
}

/** Empty when sshd reads its files again. */
async function reload(clock: Clock, signal: AbortSignal): Promise<readonly string[]> {
  if (hasSystemd()) {
    for (const unit of ["ssh.service", "sshd.service"])
      if (await succeeds(run(["systemctl", "reload", unit], { signal }))) return [];
    // With socket activation a new sshd process reads the files at each connection.
    return [];
  }
  const pid = Number(textIfExists(SSHD_PID) ?? "");
  // In a small container sshd may be PID 1.
  if (Number.isInteger(pid) && pid >= 1 && textIfExists(`/proc/${pid}/comm`)?.trim() === "sshd") {
    const written = () => statSync(SSHD_PID, { throwIfNoEntry: false })?.mtimeMs;
    const before = written();
    process.kill(pid, "SIGHUP");
    // It writes the file again when it listens again; until then the operator's next login would be refused.
    for (let waited = 0; waited < END_MS && [before, undefined].includes(written()); waited += LOOK_MS)
      await sleep(clock, LOOK_MS, signal);
    return [];
  }
  return ["sshd does not run, or not as a service: start it, or have it read its configuration again"];
}

/** Time limit for processes to end after they were killed, milliseconds. */
const KILLED_MS = 10_000;

/** Ends the processes of a user and removes the user: `userdel` refuses a user who has a process. */
export async function removeUser(name: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const uid = uidOf(name);
  if (uid === undefined) return;
  for (let waited = 0; ; waited += LOOK_MS) {
    const pids = processesOf(uid);
    if (pids.length === 0) break;
    if (waited > KILLED_MS)
      throw new EnrolError(
        `process ${pids[0]} of the user ${name} does not end; end it by hand, then uninstall again`,
      );
    for (const pid of pids) kill(pid);
    await sleep(clock, LOOK_MS, signal);
  }
  await run(["userdel", name], { signal });
}

/**
 * The processes of a user of this machine. A process with the same user id in a container has another root directory, belongs to another
 * user, and is not counted by `userdel`. Empty for root, whose processes must not be ended.
 */
export function processesOf(uid: number): readonly number[] {
  if (uid === 0) return [];
  const here = statSync("/");
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const root = statSync(`/proc/${name}/root`);
        if (root.dev !== here.dev || root.ino !== here.ino) return false;
        const line = /^Uid:\s+(.+)$/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1] ?? "";
        return line.split(/\s+/).includes(String(uid));
      } catch {
        // The process has ended meanwhile.
        return false;
      }
    })
    .map(Number);
}

/** SIGKILL: a process of the control user is a forwarder, which has nothing to finish. */
function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended meanwhile.
  }
}

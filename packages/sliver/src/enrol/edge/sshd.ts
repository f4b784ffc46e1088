import { existsSync } from "node:fs";
import { messageOf } from "@nodeyard/runtime";
import { writeAtomic } from "../../isolation/edge/atomic.ts";
import { run } from "../../isolation/edge/run.ts";
import { EnrolError } from "../errors.ts";
import { CONTROL_USER, LAYOUT } from "../layout.ts";
import { hasSystemd, textAt } from "./look.ts";

/** Why the control account could not log in as sshd is configured now, and what to do. Throws EnrolError when sshd refuses its files. */
export async function wrongSshd(signal: AbortSignal): Promise<string | undefined> {
  // It wants its folder for that, which the service makes elsewhere.
  const folder = existsSync("/run/sshd") ? [] : [run(["mkdir", "-p", "-m", "0755", "/run/sshd"], { signal })];
  await Promise.all(folder);
  const about = `user=${CONTROL_USER},host=localhost,addr=127.0.0.1`;
  const text = await run(["/usr/sbin/sshd", "-T", "-C", about], { signal }).catch((cause) => {
    throw new EnrolError(`sshd refuses its configuration: ${messageOf(cause)}`, { cause });
  });
  if (text.split("\n").includes(`authorizedkeysfile ${LAYOUT.keysFile}`)) return undefined;
  return `sshd does not read ${LAYOUT.sshd}: put "Include /etc/ssh/sshd_config.d/*.conf" at the top of /etc/ssh/sshd_config and reload it`;
}

/** Sessions go on. Returns what is left to do by hand. */
export async function reloadSshd(signal: AbortSignal): Promise<readonly string[]> {
  const left = await reload(signal);
  const text = textAt(LAYOUT.sshd);
  if (left.length === 0 && text !== undefined) await writeAtomic(LAYOUT.told, text, { mode: 0o600 });
  return left;
}

async function reload(signal: AbortSignal): Promise<readonly string[]> {
  if (hasSystemd()) {
    for (const unit of ["ssh.service", "sshd.service"]) {
      const done = await run(["systemctl", "reload", unit], { signal }).then(
        () => true,
        () => false,
      );
      if (done) return [];
    }
    // A server that a socket starts reads its files at each start.
    return [];
  }
  const pid = Number(textAt("/run/sshd.pid") ?? "");
  // In a small container the server may be the first process.
  if (Number.isInteger(pid) && pid >= 1 && textAt(`/proc/${pid}/comm`)?.trim() === "sshd") {
    process.kill(pid, "SIGHUP");
    return [];
  }
  return ["sshd does not run, or not as a service: start it, or have it read its configuration again"];
}

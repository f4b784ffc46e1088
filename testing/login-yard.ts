import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Running, Site } from "../packages/nodeyard/cli/test/nodeyard.ts";
import { hostConfig } from "./connect/host-config.ts";
import { type Sshd, startSshd } from "./sshd/index.ts";

/** A Nodeyard whose nodes, of the label `small`, are logins of this machine by a real sshd. */
export class LoginYard {
  readonly site: Site;
  /** Path of the private key that logs in. */
  readonly key: string;
  readonly #sshd: Sshd;
  readonly #connectors: Running[] = [];

  /** `ready`: so many nodes wait for a lease. */
  static async open(nodes: number, ready = 0): Promise<LoginYard> {
    const site = new Site("");
    const key = join(site.folder, "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    const sshd = await startSshd({ authorizedKey: readFileSync(`${key}.pub`, "utf8").trim() });
    site.write(hostConfig(sshd, "small", nodes, ready));
    await site.up();
    return new LoginYard(site, key, sshd);
  }

  private constructor(site: Site, key: string, sshd: Sshd) {
    this.site = site;
    this.key = key;
    this.#sshd = sshd;
  }

  /** Leases that have not ended. */
  leases(): Promise<
    readonly { readonly id: string; readonly state: string; readonly job: { readonly id: string } | null }[]
  > {
    return this.site.json("list", "--leases");
  }

  /** A process with the connectors of a file. */
  connect(file: string): Running {
    const running = this.site.start("connect", "-c", file);
    this.#connectors.push(running);
    return running;
  }

  /** Those of a test that failed would take the jobs of the next one. */
  async endConnectors(): Promise<void> {
    await Promise.all(this.#connectors.splice(0).map((running) => running.kill("SIGKILL")));
  }

  async close(): Promise<void> {
    await this.site.close();
    await this.#sshd.stop();
  }
}

/** Looks again until it is so, after such pauses; the runner of tests has the limit of time. */
export async function until(isSo: () => boolean | Promise<boolean>, pauseMs = 100): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, pauseMs));
}

/**
 * Until what is killed again and again is killed the next time, or its work is over. At other moments each time, and later after a dozen kills: on a
 * machine that is too busy for the first pauses nothing would ever get done.
 */
export async function untilKill(kills: number, over: Promise<unknown>): Promise<void> {
  const ms = (800 + 430 * (kills % 7)) * 1.2 ** Math.max(0, kills - 12);
  await Promise.race([over, new Promise((resolve) => setTimeout(resolve, ms))]);
}

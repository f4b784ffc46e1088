import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Machine } from "@nodeyard/driver";
import { output } from "./run.ts";

/** A client with a key of its own. */
export class Client {
  readonly #folder: string;
  readonly authorizedKey: string;

  private constructor(folder: string, authorizedKey: string) {
    this.#folder = folder;
    this.authorizedKey = authorizedKey;
  }

  static async make(): Promise<Client> {
    const folder = await mkdtemp(join(tmpdir(), "nodeyard-client-"));
    await output("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "client", "-f", join(folder, "key")]);
    return new Client(folder, (await readFile(join(folder, "key.pub"), "utf8")).trim());
  }

  /** Runs a command in the machine, and requires one of these host keys. */
  async run(
    machine: Pick<Machine, "interfaceIp" | "connection">,
    hostKeys: readonly string[],
    command: string,
  ): Promise<string> {
    const { interfaceIp: host, connection } = machine;
    const port = connection?.port ?? 22;
    const known = join(this.#folder, `known-${host}-${port}`);
    // OpenSSH does not report the port that it chose.
    const at = port === 22 ? host : `[${host}]:${port}`;
    const lines = hostKeys.map((key) => `${at} ${key}\n`);
    await writeFile(known, lines.join(""));
    const options = [
      "BatchMode=yes",
      "StrictHostKeyChecking=yes",
      `UserKnownHostsFile=${known}`,
      "ConnectTimeout=30",
      "LogLevel=ERROR",
    ].flatMap((option) => ["-o", option]);
    const key = join(this.#folder, "key");
    const words = ["-F", "none", "-i", key, "-p", String(port), ...options, `root@${host}`, command];
    return output("ssh", words);
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

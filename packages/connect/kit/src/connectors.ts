import type { Client } from "@nodeyard/client";
import type { Clock, Random } from "@nodeyard/runtime";
import type { Counters, Log } from "@nodeyard/telemetry";
import type { ConnectConfig } from "./config.ts";
import { openSsh } from "./edge/ssh.ts";
import type { Connector } from "./kind.ts";
import { nodeShell } from "./on-node.ts";

/** What all connectors of a process share. */
export interface ConnectParts {
  readonly pool: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly counters: Counters;
}

/** Starts all connectors of a file. When one cannot be started, those before it are closed again, and its error is thrown. */
export async function startConnectors(config: ConnectConfig, parts: ConnectParts): Promise<Connector> {
  const running: Connector[] = [];
  const close = async (graceMs: number) => {
    const ends = await Promise.allSettled(running.map((one) => one.close(graceMs)));
    const failed = ends.find((end) => end.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  };
  const shell = nodeShell(openSsh(config.ssh["identity-file"]), parts);
  try {
    for (const { name, kind, options } of config.sections)
      running.push(await kind.open(options, { ...parts, name, shell, log: named(parts.log, name) }));
  } catch (error) {
    await close(0).catch(() => {});
    throw error;
  }
  return { close };
}

/** A log whose lines name the connector. */
function named(log: Log, connector: string): Log {
  const at = (level: keyof Log) => (facts: object, text: string) => log[level]({ connector, ...facts }, text);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

import { connect } from "@nodeyard/client";
import {
  type ConnectConfig,
  ConnectConfigError,
  type ConnectorKind,
  readConnectConfig,
  readSecret,
  startConnectors,
} from "@nodeyard/connect";
import { artemis } from "@nodeyard/connect-artemis";
import { boskos } from "@nodeyard/connect-boskos";
import { gitea } from "@nodeyard/connect-gitea";
import { github } from "@nodeyard/connect-github";
import { zuul } from "@nodeyard/connect-zuul";
import { PrometheusExporter } from "@nodeyard/metrics";
import { Counters, type ProcessLog } from "@nodeyard/telemetry";
import { type Machine, VERSION } from "@nodeyard/telemetry/machine";
import { readText } from "./edge/files.ts";
import { listenMetrics } from "./edge/metrics-server.ts";
import type { Stoppable } from "./until-stopped.ts";

/** Systems that connectors speak with. */
export const CONNECTOR_KINDS: readonly ConnectorKind<never>[] = [artemis, boskos, gitea, github, zuul];

export interface ConnectOptions {
  /** Path of connect.yaml. */
  readonly path: string;
  /** The socket of a pool in this process or on this machine, where the file names none. */
  readonly socket?: string;
}

/** Runs the connectors of a file. Rejects with ConnectConfigError, then nothing is left open. A pool that does not answer yet is waited for. */
export async function startConnect(
  { path, socket }: ConnectOptions,
  { clock, random }: Machine,
  log: ProcessLog,
  counters = new Counters(),
): Promise<Stoppable> {
  const config = readConnectConfig(readText(path, "the connectors"), path, CONNECTOR_KINDS);
  const pool = poolOf(config, path, socket, { clock, random });
  const parts = { pool, clock, random, log: log.area("connect"), counters };
  const server = config.metrics && (await listenMetrics(config.metrics, await pageOf(counters)));
  try {
    const running = await startConnectors(config, parts);
    return {
      async close(graceMs) {
        await running.close(graceMs);
        await server?.close();
      },
    };
  } catch (error) {
    await server?.close();
    throw error;
  }
}

function poolOf(
  { nodeyard }: ConnectConfig,
  path: string,
  socket: string | undefined,
  outside: Pick<Machine, "clock" | "random">,
) {
  const { url = socket, "token-file": tokenFile } = nodeyard ?? {};
  if (url === undefined)
    throw new ConnectConfigError(
      `${path}: nodeyard.url is missing: the address of the pool, or the path of its http.sock`,
    );
  if (tokenFile === undefined) return connect(url, outside);
  return connect(url, { ...outside, token: readSecret(tokenFile) });
}

async function pageOf(counters: Counters) {
  const exporter = await PrometheusExporter.start(VERSION);
  return () => exporter.page(counters, []);
}

import { type Client, connect } from "@nodeyard/client";
import type { Connector, ConnectorKind, ConnectorParts } from "@nodeyard/connect";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { Counters, type LogLine, memoryLog } from "@nodeyard/telemetry";
import { type Running, Site } from "../../packages/nodeyard/cli/test/nodeyard.ts";

/** A connector that a test has opened. */
export interface Opened extends Connector {
  /** Where callers reach it. */
  readonly url: string;
  readonly lines: readonly LogLine[];
}

/** A real `nodeyard up`, and connectors that are its clients as they would be on another machine. */
export class Yard {
  readonly site: Site;
  readonly up: Running;
  readonly url: string;
  readonly token: string;
  readonly pool: Client;
  readonly #open = new Set<Connector>();

  private constructor(site: Site, up: Running, url: string, token: string) {
    this.site = site;
    this.up = up;
    this.url = url;
    this.token = token;
    this.pool = connect(url, { token });
  }

  static async open(config: string): Promise<Yard> {
    const site = new Site(config);
    const up = site.start("-c", site.config, "up", "--webapp", "127.0.0.1:0");
    await up.printed("Nodeyard is up");
    await up.printed('"address":"http://');
    const url = /"address":"(http:\/\/[^"]+)"/.exec(up.err)![1]!;
    const { token } = await site.json<{ token: string }>("token", "create", "facade", "--role", "operator");
    return new Yard(site, up, url, token);
  }

  /** Opens a connector on a free port, unless `options` name one. */
  async connector<Options>(kind: ConnectorKind<Options>, options: object, pool = this.pool): Promise<Opened> {
    const log = memoryLog();
    const parts = {
      name: "here",
      pool,
      clock: systemClock,
      random: systemRandom,
      log,
      counters: new Counters(),
    } as Partial<ConnectorParts> as ConnectorParts;
    const parsed = kind.options.parse({ listen: "127.0.0.1:0", ...options });
    const connector = await kind.open(parsed as Options, parts);
    this.#open.add(connector);
    const { url } = log.lines.find(({ text }) => text.startsWith("serves "))!.facts as {
      readonly url: string;
    };
    const close = async (graceMs: number) => {
      this.#open.delete(connector);
      await connector.close(graceMs);
    };
    return { url, lines: log.lines, close };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((one) => one.close(0)));
    await this.site.close();
  }
}

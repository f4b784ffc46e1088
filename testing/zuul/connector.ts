import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Victim } from "../chaos/victim.ts";
import type { Certificates } from "../zookeeper/index.ts";

const INSIDE = fileURLToPath(new URL("./inside/register.ts", import.meta.url));

/** Where a connector finds Zuul and the pool, and where its file is written. */
export interface ConnectorPlace {
  readonly folder: string;
  readonly pool: string;
  readonly servers: string;
  readonly tls: Certificates;
  /** More lines of its section. */
  readonly more?: string;
}

/** `nodeyard connect` with one connector `zuul`; `kill`: the number of a write and `before` or `after`, where it ends itself. */
export async function startConnector(place: ConnectorPlace, kill = ""): Promise<Victim> {
  const { folder, pool, servers, tls, more = "" } = place;
  const file = join(folder, "connect.yaml");
  writeFileSync(
    file,
    `nodeyard: {url: ${pool}}
connectors:
  - name: zuul
    system: zuul
    connection: nodeyard
    zookeeper: {servers: "${servers}", ca: ${tls.ca}, cert: ${tls.cert}, key: ${tls.key}, session-seconds: 2}
${more}`,
  );
  const env = { NODEYARD_ZUUL_KILL: kill };
  const victim = new Victim(["-c", file, "connect"], { inside: INSIDE, env });
  await victim.printed("the connectors run");
  return victim;
}

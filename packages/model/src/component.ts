import { RecordError } from "./errors.ts";
import { type Fields, odd, readFields, text, texts } from "./fields.ts";
import { parseObject } from "./json/parse.ts";

/** All states of a component. */
export const componentStates = ["initializing", "running", "paused", "stopped"] as const;
/** A state of a component. */
export type ComponentState = (typeof componentStates)[number];

/** A process, or one of its pools, as it registers itself (docs/contract/records.md, "Component"). */
export interface ComponentRecord {
  /** The operating system's host name as it is. */
  readonly hostname: string;
  /** "pool", "launcher" or "builder"; kinds of other makers are read as they are. */
  readonly kind: string;
  /** A value of componentStates; anything else is read as "stopped". */
  readonly state: ComponentState;
  readonly version: string | null;
  readonly modelApi: number;
  /** Pools only: the launcher-pool id. */
  readonly id: string | null;
  readonly name: string | null;
  readonly providerName: string | null;
  readonly supportedLabels: readonly string[];
  /** Lower is preferred. */
  readonly priority: number;
  /** A handler waits for quota: pools with a higher number may take what comes. */
  readonly paused: boolean;
}

/** A component to be registered; what is left out has its default. */
export type NewComponent = Pick<ComponentRecord, "hostname" | "kind"> & Partial<ComponentRecord>;

const states: ReadonlySet<unknown> = new Set(componentStates);
const integer = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : odd);

const fields: Fields<ComponentRecord> = {
  hostname: { key: "hostname", missing: "", read: (value) => (typeof value === "string" ? value : odd) },
  kind: { key: "kind", missing: "", read: (value) => (typeof value === "string" ? value : odd) },
  state: {
    key: "state",
    missing: "stopped",
    read: (value) => (states.has(value) ? (value as ComponentState) : odd),
  },
  version: { key: "version", missing: null, read: text },
  modelApi: { key: "model_api", missing: 0, read: integer },
  id: { key: "id", missing: null, read: text },
  name: { key: "name", missing: null, read: text },
  providerName: { key: "provider_name", missing: null, read: text },
  supportedLabels: { key: "supported_labels", missing: [], read: texts },
  priority: { key: "priority", missing: 100, read: integer },
  paused: { key: "paused", missing: false, read: (value) => (typeof value === "boolean" ? value : odd) },
};

const ofEveryKind = new Set<string>(["hostname", "kind", "state", "version", "model_api"]);

/** @throws RecordError `record.empty`, `record.not_json`, `record.not_an_object` */
export function decodeComponent(data: Uint8Array): ComponentRecord {
  const { object } = parseObject("component", data);
  const record: Record<string, unknown> = {};
  readFields("component", fields, object, record);
  delete record.oddities;
  return record as unknown as ComponentRecord;
}

/** A component with all its members. */
export function newComponent(values: NewComponent): ComponentRecord {
  const record: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    record[name] = values[name as keyof NewComponent] ?? field.missing;
  }
  return record as unknown as ComponentRecord;
}

/** A copy with `patch` in it; members that are undefined are left alone. */
export function changeComponent(record: ComponentRecord, patch: Partial<ComponentRecord>): ComponentRecord {
  const given = Object.entries(patch).filter(([, value]) => value !== undefined);
  return { ...record, ...Object.fromEntries(given) };
}

/** Keys sorted, so that equal components have equal bytes; pool keys only for pools. */
export function encodeComponent(record: ComponentRecord): Uint8Array {
  const entries: [string, unknown][] = [];
  for (const [name, field] of Object.entries(fields)) {
    if (record.kind !== "pool" && !ofEveryKind.has(field.key)) continue;
    entries.push([field.key, record[name as keyof ComponentRecord]]);
  }
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return encoder.encode(JSON.stringify(Object.fromEntries(entries)));
}

/** The name of a pool of one process: new at every start; stands in `declined_by` and in `Node.launcher`. */
export function launcherPoolId(facts: {
  readonly fqdn: string;
  readonly provider: string;
  readonly pool: string;
  /** 32 lower-case hexadecimal digits. */
  readonly hex: string;
}): string {
  if (!/^[0-9a-f]{32}$/.test(facts.hex)) {
    throw new RecordError(
      "record.bad_id",
      `a launcher-pool id ends in 32 hexadecimal digits, not in ${facts.hex}`,
    );
  }
  return `${facts.fqdn}-PoolWorker.${facts.provider}-${facts.pool}-${facts.hex}`;
}

const encoder = new TextEncoder();

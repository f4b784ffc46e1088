import { RecordError } from "./errors.ts";
import { bool, number, oneOf, optional, readFields, text, texts, type ValuesOf, word } from "./fields.ts";
import { parseObject } from "./json/parse.ts";

/** All states of a component. */
export const componentStates = ["initializing", "running", "paused", "stopped"] as const;
/** A state of a component. */
export type ComponentState = (typeof componentStates)[number];

const fields = {
  /** The operating system's host name as it is. */
  hostname: optional("hostname", "", word),
  /** "pool", "launcher" or "builder"; kinds of other makers are read as they are. */
  kind: optional("kind", "", word),
  /** A value of componentStates; anything else is read as "stopped". */
  state: optional<ComponentState>("state", "stopped", oneOf(...componentStates)),
  version: optional("version", null, text),
  modelApi: optional("model_api", 0, number),
  /** Pools only: the launcher-pool id. */
  id: optional("id", null, text),
  name: optional("name", null, text),
  providerName: optional("provider_name", null, text),
  supportedLabels: optional<readonly string[]>("supported_labels", [], texts),
  /** Lower is preferred. */
  priority: optional("priority", 100, number),
  /** A handler waits for quota: pools with a higher number may take what comes. */
  paused: optional<boolean>("paused", false, bool),
};

/** A process, or one of its pools, as it registers itself (docs/contract/records.md, "Component"). */
export type ComponentRecord = ValuesOf<typeof fields>;
/** A component to be registered; what is left out has its default. */
export type NewComponent = Pick<ComponentRecord, "hostname" | "kind"> & Partial<ComponentRecord>;

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

import { RecordError } from "./errors.ts";
import { bool, number, oneOf, optional, readFields, text, texts, type ValuesOf, word } from "./fields.ts";
import { parseObject } from "./json/parse.ts";

/** All states of a component. */
export const componentStates = ["initializing", "running", "paused", "stopped"] as const;
/** A state of a component. */
export type ComponentState = (typeof componentStates)[number];

const fields = {
  /** Host name as the operating system reports it. */
  hostname: optional("hostname", "", word),
  /** "pool", "launcher" or "builder". Kinds that other programs register are kept as they are. */
  kind: optional("kind", "", word),
  /** One of componentStates. Any other value is read as "stopped". */
  state: optional<ComponentState>("state", "stopped", oneOf(...componentStates)),
  version: optional("version", null, text),
  modelApi: optional("model_api", 0, number),
  /** The launcher-pool id; only for pools. */
  id: optional("id", null, text),
  name: optional("name", null, text),
  providerName: optional("provider_name", null, text),
  supportedLabels: optional<readonly string[]>("supported_labels", [], texts),
  /** Pools with a lower number are preferred. */
  priority: optional("priority", 100, number),
  /** A request of this pool waits for quota, so pools with a higher priority number may accept new requests. */
  paused: optional<boolean>("paused", false, bool),
};

/** The registration of a process, or of one of its pools (docs/contract/records.md, "Component"). */
export type ComponentRecord = ValuesOf<typeof fields>;
/** Values of a component to be registered; missing ones get their defaults. */
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

/** Completes a component with defaults. */
export function newComponent(values: NewComponent): ComponentRecord {
  const record: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    record[name] = values[name as keyof NewComponent] ?? field.missing;
  }
  return record as unknown as ComponentRecord;
}

/** A copy with the members of `patch`; undefined members change nothing. */
export function changeComponent(record: ComponentRecord, patch: Partial<ComponentRecord>): ComponentRecord {
  const given = Object.entries(patch).filter(([, value]) => value !== undefined);
  return { ...record, ...Object.fromEntries(given) };
}

/** The bytes of a component. Keys are sorted, so that equal components have equal bytes. Pool keys are written only for pools. */
export function encodeComponent(record: ComponentRecord): Uint8Array {
  const entries: [string, unknown][] = [];
  for (const [name, field] of Object.entries(fields)) {
    if (record.kind !== "pool" && !ofEveryKind.has(field.key)) continue;
    entries.push([field.key, record[name as keyof ComponentRecord]]);
  }
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Buffer.from(JSON.stringify(Object.fromEntries(entries)));
}

/** Id of one pool of one process, new at every start. It appears in `declined_by` and in `Node.launcher`. */
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

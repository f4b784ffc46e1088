import { deflateSync, inflateSync } from "node:zlib";
import { ObjectText, parseObject } from "@nodeyard/model";
import { errorClass, messageOf } from "@nodeyard/runtime";
import { z } from "zod";

/** A record of Zuul has another form than the releases that this Nodeyard knows write. */
export class ZuulRecordError extends errorClass("connect.zuul_record") {}

/** Versions of Zuul's data model with which this connector was tested against the real Zuul (zuul/model_api.py). */
export const KNOWN_MODEL_APIS: ReadonlySet<number> = new Set([38]);

const nullable = z.string().nullable();
/** What the connector reads of a ProviderNode (zuul/model.py, class ProviderNode); all else is kept as it is. */
const node = z.object({
  uuid: z.string().regex(/^[0-9a-f]{32}$/),
  state: z.enum([
    ...["requested", "building", "rebuilding", "ready", "failed", "tempfailed", "in-use", "used", "outdated"],
    ...["registering", "deregister", "hold", "snapshot", "slot-host"],
  ] as const),
  state_time: z.number(),
  request_time: z.number(),
  label: z.string(),
  connection_name: z.string(),
  main_node_id: nullable.optional(),
  subnodes: z.array(z.string()).optional(),
  hold_expiration: z.number().nullable().optional(),
  max_age: z.number().nullable().optional(),
  max_ready_age: z.number().nullable().optional(),
  interface_ip: nullable,
  connection_port: z.unknown(),
  connection_type: nullable,
  username: nullable,
  host_keys: z.array(z.string()),
  host_id: nullable,
  cloud: nullable,
  comment: nullable.optional(),
});
const assignment = z.object({
  request_id: z.string(),
  min_request_version: z.number().nullable().optional(),
});
const lifecycle = z.object({ next_state: nullable, next_comment: nullable.optional() });
const request = z.object({
  uuid: z.string(),
  priority: z.number(),
  buildset_uuid: z.string(),
  job_name: z.string(),
  provider_node_data: z.array(z.object({ uuid: z.string() })),
});
const component = z.object({
  hostname: z.string(),
  model_api: z.number(),
  connection_filter: z.array(z.string()).nullable().optional(),
});

/** Keys of a ProviderNode that Zuul 14.3 writes: one more means that Zuul's records have changed. */
const NODE_KEYS: ReadonlySet<string> = new Set(
  `${Object.keys(node.shape).join(" ")} zuul_event_id span_info min_retention_time label_config_hash label_aliases tags endpoint_name
   create_state delete_state quota image_upload_uuid attributes boot_timeout snapshot_timeout snapshot_expiration executor_zone
   kubernetes_connection shell_type host_key_checking python_path region az public_ipv4 private_ipv4 public_ipv6 private_ipv6 provider resources slot reuse node_properties
   kubernetes_namespace_id`.split(/\s+/),
);

export type ProviderNode = z.output<typeof node>;
export type Assignment = z.output<typeof assignment>;
export type Lifecycle = z.output<typeof lifecycle>;
export type NodesetRequest = z.output<typeof request>;
export type Component = z.output<typeof component>;

/** A ProviderNode as it is stored, and what of it the connector reads. */
export interface StoredNode {
  readonly node: ProviderNode;
  /** Zuul's name of the class, which stands before the data. */
  readonly kind: string;
  readonly text: ObjectText;
  /** Keys that this release does not know. */
  readonly unknown: readonly string[];
}

/** Reads a ProviderNode: the name of its class, a zero byte, and compressed JSON (zuul/zk/zkobject.py, PolymorphicZKObjectMixin). */
export function decodeNode(path: string, data: Uint8Array): StoredNode {
  const end = data.indexOf(0);
  const { text, object } = inflated(path, data.subarray(end + 1));
  return {
    node: checked(path, node, object),
    kind: Buffer.from(data.subarray(0, end)).toString("utf8"),
    text: new ObjectText(text),
    unknown: Object.keys(object).filter((key) => !NODE_KEYS.has(key)),
  };
}

/** The bytes of the record with other values of some keys. All others keep their text, whoever wrote them. */
export function encodeNode(stored: StoredNode, changes: Partial<ProviderNode>): Uint8Array {
  const values = Object.entries(changes).map(([key, value]) => [key, JSON.stringify(value)] as const);
  const { text } = stored.text.with(new Map(values));
  return Buffer.concat([Buffer.from(`${stored.kind}\0`), deflateSync(text)]);
}

/** The record of a snapshot that is over without one; undefined: it is over already. */
export function withoutSnapshot(path: string, data: Uint8Array): Uint8Array | undefined {
  const { text, object } = inflated(path, data);
  if (object.complete === true) return undefined;
  return deflateSync(new ObjectText(text).with(new Map([["complete", "true"]])).text);
}

export const decodeAssignment = (path: string, data: Uint8Array): Assignment => plain(path, assignment, data);
export const decodeLifecycle = (path: string, data: Uint8Array): Lifecycle => plain(path, lifecycle, data);
export const decodeRequest = (path: string, data: Uint8Array): NodesetRequest => plain(path, request, data);
/** Components are not compressed. */
export const decodeComponent = (path: string, data: Uint8Array): Component =>
  checked(path, component, parseObject(path, data).object);

function plain<T extends z.ZodType>(path: string, schema: T, data: Uint8Array): z.output<T> {
  return checked(path, schema, inflated(path, data).object);
}

function inflated(path: string, data: Uint8Array): ReturnType<typeof parseObject> {
  let bytes: Uint8Array;
  try {
    bytes = inflateSync(data, { maxOutputLength: 16 << 20 });
  } catch (cause) {
    throw new ZuulRecordError(`${path} is not compressed as Zuul 14 does it: ${messageOf(cause)}`, { cause });
  }
  return parseObject(path, bytes);
}

function checked<T extends z.ZodType>(path: string, schema: T, value: unknown): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new ZuulRecordError(
    `${path} is not as Zuul 14.3 writes it: ${issue?.path.join(".") || "the record"}: ${issue?.message}; is this Zuul newer than this Nodeyard?`,
  );
}

import {
  deadLetterPath,
  decodeLease,
  decodeNode,
  decodeRemark,
  decodeRequest,
  LEASES,
  type Lease,
  leasePath,
  readable,
  remarkPath,
  type Standing,
} from "@nodeyard/model";
import {
  boolean,
  counts,
  type Fields,
  leaseFields,
  maybe,
  nodeFields,
  nodeTenant,
  number,
  type Row,
  requestFields,
  rowOf,
  standingFields,
  text,
  texts,
} from "@nodeyard/operations/listing";
import type { ComponentEntry, NodeEntry, OwnEntry, RequestEntry, View } from "@nodeyard/view";
import { redacted } from "../redacted.ts";
import { type Principal, seesAll, seesSecrets, seesTenant } from "./principal.ts";

/**
 * The name of an image, whose row is made when it is sent: it sums up builds and uploads. The state before the change is not
 * kept; `former` stands for it.
 */
export interface ImageEntry {
  readonly image: string;
  readonly former?: boolean;
}

/** A thing as it was or is. */
export type Entry = NodeEntry | RequestEntry | OwnEntry | ComponentEntry | ImageEntry | Standing;

/** The JSON of an entry, in the file of events. */
export type Stored = Readonly<Record<string, unknown>>;

/** All that lists and events need of things of one kind. */
interface KindOf<E> {
  /** Of its rows. */
  readonly fields: Fields<never>;
  /** All that the view has. Things that come or go during the iteration may be included or not. */
  all(view: View): Iterable<readonly [id: string, entry: E]>;
  /** One by its id; absent: only lists show it. */
  one?(view: View, id: string): E | undefined;
  /** Undefined: the caller may not see it. */
  row(entry: E, view: View, principal: Principal): Row | undefined;
  /** Records as the tree has them, so that a later release decodes them as it decodes the tree. Undefined: the thing is gone. */
  stored(entry: E, view: View): Stored | undefined;
  /** The opposite. Throws RecordError for a record that this release cannot read: then the file counts as damaged. */
  restored(id: string, stored: Stored): E;
}

function kind<E extends Entry>(spec: KindOf<E>): KindOf<Entry> {
  return spec as unknown as KindOf<Entry>;
}

/** A diskimage that the tree knows. */
interface Image {
  readonly name: string;
  readonly images: View["images"];
  readonly facts: NonNullable<ReturnType<View["images"]["get"]>>;
}

/** A diskimage, for programs. */
const imageFields: Fields<Image> = {
  image: [text, ({ name }) => name],
  paused: [boolean, ({ facts }) => facts.paused],
  build_requested: [boolean, ({ name, images }) => images.requested(name)],
  builds: [counts, ({ facts }) => facts.builds],
  uploaded_to: [texts, ({ facts }) => [...facts.ready.keys()].sort()],
  uploading_to: [texts, ({ facts }) => [...facts.uploading].sort()],
};

/** A pool, for programs: one for each launcher that serves it. */
const poolFields: Fields<ComponentEntry> = {
  id: [text, ({ key }) => key],
  provider: [maybe, ({ record }) => record.providerName],
  pool: [maybe, ({ record }) => record.name],
  launcher: [text, ({ record }) => record.hostname],
  state: [text, ({ record }) => record.state],
  labels: [texts, ({ record }) => record.supportedLabels],
  priority: [number, ({ record }) => record.priority],
  paused: [boolean, ({ record }) => record.paused],
};

/** A launcher or builder process, for programs. */
const memberFields: Fields<ComponentEntry> = {
  id: [text, ({ key }) => key],
  kind: [text, ({ kind }) => kind],
  hostname: [text, ({ record }) => record.hostname],
  state: [text, ({ record }) => record.state],
  version: [maybe, ({ record }) => record.version],
};

/** Components of a launcher: its pools, or the process itself. */
function components(fields: Fields<ComponentEntry>, isOne: (kind: string) => boolean): KindOf<Entry> {
  return kind<ComponentEntry>({
    fields,
    *all(view) {
      for (const entry of view.components.values()) if (isOne(entry.kind)) yield [entry.key, entry];
    },
    row: (entry, _, principal) => (seesAll(principal) ? rowOf(fields, entry) : undefined),
    stored: ({ version, kind, record }) => ({ v: version, kind, s: record }),
    restored: (key, { v, kind, s }) => ({ key, kind, version: v, record: s }) as ComponentEntry,
  });
}

const bytes = (text: unknown) => Buffer.from(text as string);

/** The kinds of things in an event stream, in the order in which they are sent; their rows are those of the lists. Values of `kinds`, and of `kind` in events. */
export const KINDS = {
  node: kind<NodeEntry>({
    fields: nodeFields,
    all: ({ nodes }) => nodes.byId,
    one: ({ nodes }, id) => nodes.byId.get(id),
    // Ages are given as points in time, so that a row changes only with its node.
    row({ record, contenders }, { own }, principal) {
      if (!seesTenant(principal, nodeTenant(record))) return undefined;
      const remark = own.get(remarkPath(record.id));
      const row = rowOf(nodeFields, {
        record,
        locked: contenders.length > 0,
        deadLetter: own.has(deadLetterPath(record.id)),
        remark: remark && decodeRemark(remark.data),
      });
      return seesSecrets(principal) ? row : redacted(row);
    },
    stored: ({ version, contenders, record }) => ({ v: version, c: contenders, s: record.source.text }),
    restored: (id, { v, c, s }) =>
      ({ id, version: v, contenders: c, record: decodeNode(id, bytes(s)) }) as NodeEntry,
  }),
  request: kind<RequestEntry>({
    fields: requestFields,
    all: ({ requests }) => requests.byId,
    one: ({ requests }, id) => requests.byId.get(id),
    row: ({ record }, _, principal) =>
      seesTenant(principal, record.tenantName) ? rowOf(requestFields, record) : undefined,
    stored: ({ version, record }) => ({ v: version, s: record.source.text }),
    restored: (id, { v, s }) => ({ id, version: v, record: decodeRequest(id, bytes(s)) }) as RequestEntry,
  }),
  lease: kind<OwnEntry>({
    fields: leaseFields,
    *all({ own }) {
      for (const entry of own.values()) {
        const id = leaseAt(entry.path);
        if (id !== undefined) yield [id, entry];
      }
    },
    one: ({ own }, id) => own.get(leasePath(id)),
    row(entry, _, principal) {
      const lease = leaseFrom(entry, principal);
      return lease && rowOf(leaseFields, lease);
    },
    stored: ({ version, created, data }) => ({ v: version, at: created, s: Buffer.from(data).toString() }),
    restored: (id, { v, at, s }) =>
      ({ path: leasePath(id), version: v, created: at, data: bytes(s) }) as OwnEntry,
  }),
  image: kind<ImageEntry>({
    fields: imageFields,
    *all({ images }) {
      for (const image of images.names()) yield [image, { image }];
    },
    row({ image, former }, view, principal) {
      if (!seesAll(principal)) return undefined;
      // A former image needs no more than its name: it is only asked whether it was seen.
      return former === true ? { image } : imageRow(image, view);
    },
    stored: ({ image }, view) => imageRow(image, view),
    restored: (image) => ({ image }),
  }),
  pool: components(poolFields, (kind) => kind === "pool"),
  member: components(memberFields, (kind) => kind !== "pool"),
  standing: kind<Standing>({
    fields: standingFields,
    *all({ standings }) {
      for (const standing of standings.list()) yield [standing.id, standing];
    },
    row: (standing, _, principal) => (seesAll(principal) ? rowOf(standingFields, standing) : undefined),
    stored: (standing) => ({ s: standing }),
    restored: (_, { s }) => s as Standing,
  }),
} as const;

export type Kind = keyof typeof KINDS;
export const KIND_NAMES = Object.keys(KINDS) as readonly Kind[];

/** The row of a thing; undefined where it does not exist, the caller may not see it, or only lists show its kind. */
export function rowIn(view: View, name: Kind, id: string, principal: Principal): Row | undefined {
  const entry = KINDS[name].one?.(view, id);
  return entry && KINDS[name].row(entry, view, principal);
}

/** Undefined when the tree does not have the image. */
function imageRow(name: string, { images }: View): Row | undefined {
  const facts = images.get(name);
  return facts && rowOf(imageFields, { name, images, facts });
}

/** The lease of a record at this path; undefined: it is of something else. */
export function leaseAt(path: string): string | undefined {
  return path.startsWith(`${LEASES}/`) ? path.slice(LEASES.length + 1) : undefined;
}

/** A lease that the caller may see. */
export function leaseIn(view: View, id: string, principal: Principal): Lease | undefined {
  const entry = view.own.get(leasePath(id));
  return entry && leaseFrom(entry, principal);
}

/** Undefined for a lease that cannot be read, and for one that the caller may not see: a client sees its own leases, and those of tenants that it sees. */
function leaseFrom({ path, data }: OwnEntry, principal: Principal): Lease | undefined {
  const lease = readable(() => decodeLease(leaseAt(path) ?? "", data));
  if (lease === undefined) return undefined;
  return lease.owner === principal.name || seesTenant(principal, lease.tenant) ? lease : undefined;
}

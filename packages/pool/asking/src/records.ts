import { z } from "zod";

/** Parent of the questions: sequential ephemeral znodes of the processes that ask. */
export const ASKS = "/nodeyard/asks";
/** Parent of the answers, `<name of the question>-<member>`: an ephemeral question can have no children. */
export const ANSWERS = "/nodeyard/answers";
/** Parent of the members: ephemeral znodes of all Nodeyard processes (`announceMember`). */
export const MEMBERS = "/nodeyard/members";

/** The longest time that a question may wait for answers, milliseconds; longer times are cut. */
export const LONGEST_MS = 60_000;

const id = z.string().max(512);
/** Tree time, milliseconds. */
const time = z.number();
const facts = z.record(z.string(), z.unknown());

const buildLogRangeSchema = z.object({
  image: id,
  build: id,
  /** In bytes; absent: so that it ends where the log does. */
  from: z.number().int().nonnegative().optional(),
  limit: z.number().int().nonnegative().max(65_536),
});
/** Which part of the log of a build. */
export type BuildLogRange = z.infer<typeof buildLogRangeSchema>;

const buildLogPartSchema = z.object({
  text: z.string(),
  /** Byte offsets of this part and of the next one; `size` is the length of the whole. */
  from: z.number(),
  next: z.number(),
  size: z.number(),
});
/** A part of the log of a build. */
export type BuildLogPart = z.infer<typeof buildLogPartSchema>;

const consoleSchema = z.object({
  lines: z.array(z.string()).readonly(),
  /** Whether there was more before. */
  cut: z.boolean(),
  /** Why it could not be read. */
  problem: z.string().nullable(),
});
/** The end of a machine's console, without anything that a terminal would obey. */
export type ConsoleEnd = z.infer<typeof consoleSchema>;

const aboutSchema = z.object({
  request: id.optional(),
  node: id.optional(),
  lease: id.optional(),
  job: id.optional(),
  label: id.optional(),
  image: id.optional(),
  provider: id.optional(),
  /** Of all tenants. */
  tenants: z.boolean().optional(),
  log: buildLogRangeSchema.optional(),
  /** The node whose console is wanted. */
  console: id.optional(),
});

/** The subjects of a question; a member answers with what it knows of any of them. */
export type About = z.infer<typeof aboutSchema>;

/**
 * A question to every member. It is of use for `withinMs` after the znode was made, by the tree's clock: no clock of the
 * asker has to be right.
 */
const askSchema = z.object({ v: z.literal(1), about: aboutSchema, withinMs: z.number().positive() });
export type Ask = z.infer<typeof askSchema>;

const estimateSchema = z.object({
  /** From now, milliseconds: mostly, and eight times of ten between the others. */
  likelyMs: z.number(),
  fromMs: z.number(),
  toMs: z.number(),
  /** Launches and uses of the label that were seen lately. */
  launches: z.number(),
  uses: z.number(),
});

/** Where a request, or a request for one node of a label, stands in one pool. */
const outlookSchema = z.object({
  /** `<provider>/<pool>`. */
  pool: z.string(),
  provider: z.string(),
  outlook: z.enum(["serves", "can", "waits", "declines", "lacks"]),
  code: z.string(),
  facts,
  since: time.nullable(),
  nextTry: time.nullable(),
  /** From 1; null: it stands in no line of this pool. */
  position: z.number().nullable(),
  waiting: z.number(),
  estimate: estimateSchema.nullable(),
  /** Why there is no estimate, of the scheduler's `unknownReasons`; null also where the request is not served. */
  unknown: z.string().nullable(),
});
/** What a pool of a launcher would do with a request now. */
export type PoolOutlook = z.infer<typeof outlookSchema>;

/** A step of a launch or deletion in progress. */
const underWaySchema = z.object({
  node: id,
  of: z.string(),
  attempt: z.number(),
  step: z.string(),
  began: time,
});
/** A step of a launch or deletion that a launcher is at. */
export type UnderWay = z.infer<typeof underWaySchema>;

const eventSchema = z.object({
  at: time,
  event: z.string(),
  request: z.string().nullable(),
  node: z.string().nullable(),
  facts,
});

/** A build or upload in progress. */
const imageWorkSchema = z.object({
  kind: z.enum(["build", "upload"]),
  image: id,
  build: id,
  /** Of an upload. */
  provider: id.nullable(),
  /** Its current phase, as free text. */
  phase: z.string(),
  bytes: z.number(),
  /** Null: not known beforehand. */
  total: z.number().nullable(),
  elapsedMs: z.number(),
  bytesPerSecond: z.number(),
  etaMs: z.number().nullable(),
});
/** A build or upload that a builder is at. */
export type ImageWork = z.infer<typeof imageWorkSchema>;

/** What a builder makes of an image: why it builds it, or uploads it to a provider, or does not. */
const imageOutlookSchema = z.object({
  kind: z.enum(["build", "upload"]),
  image: id,
  /** Of an upload. */
  provider: id.nullable(),
  code: z.string(),
  facts,
  nextTry: time.nullable(),
});
/** What a builder would do with an image now, and why. */
export type ImageOutlook = z.infer<typeof imageOutlookSchema>;

const amounts = z.record(z.string(), z.number());
/** A provider as one launcher serves it. */
const providerUseSchema = z.object({
  name: id,
  driver: z.string(),
  /** The cloud's limits, and what others leave of them; resources without a limit are absent. */
  limits: amounts,
  quota: amounts,
  /** When they were read; null: they have not been, or the driver has none. */
  readAt: time.nullable(),
  /** What nodes of all launchers take, planned ones of this launcher included. */
  used: amounts,
  launching: z.number(),
  /** Null: any number may be launched at once. */
  maxConcurrency: z.number().nullable(),
  /** Its rate limit; absent: it is not open, or has none of its own. */
  pace: z.object({ waiting: z.number(), free: z.number(), intervalMs: z.number() }).optional(),
  pools: z.array(
    z.object({
      name: id,
      limits: amounts,
      used: amounts,
      /** Requests in its queue. */
      waiting: z.number(),
      paused: z.boolean(),
    }),
  ),
  /** The last errors of launches and deletions since the launcher started, oldest first; times are of its wall clock. */
  errors: z.array(
    z.object({ at: time, event: z.string(), node: id, kind: z.string().nullable(), error: z.string() }),
  ),
});
/** A provider as one launcher serves it: what the scheduler decides by, and how the cloud's API fares. */
export type ProviderUse = z.infer<typeof providerUseSchema>;

/** What a tenant, or a client of it, has and waits for: `TenantUse` of the scheduler. */
const tenantUseSchema = z.object({
  tenant: id.nullable(),
  client: id.nullable(),
  nodes: z.number(),
  waiting: z.number(),
  weight: z.number().nullable(),
  perHour: amounts,
  budget: z
    .object({
      amount: z.number(),
      currency: z.string(),
      spent: z.number(),
      unpriced: z.number(),
      level: z.enum(["free", "near", "used"]),
      month: z.string(),
      until: time,
    })
    .nullable(),
});
/** What a tenant, or a client of it, has and waits for. */
export type TenantUse = z.infer<typeof tenantUseSchema>;

/** All that one member knows. */
export const testimonySchema = z.object({
  /** Why the request waits, all pools of the member together; null: not asked, not known, or it waits for nothing. */
  wait: z.object({ code: z.string(), facts, since: time, nextTry: time.nullable() }).nullable(),
  pools: z.array(outlookSchema),
  underWay: z.array(underWaySchema),
  events: z.array(eventSchema),
  /** Why there is no history; null: there may be. */
  problem: z.string().nullable(),
  /** Of a held node whose provider the launcher serves: its `max-hold-age`, milliseconds; absent: it never expires by that. */
  maxHoldAgeMs: z.number().optional(),
  /** Of a node whose machine is where its provider does not look, at the launcher that serves the provider: both places. */
  elsewhere: z.object({ place: z.string(), now: z.string() }).optional(),
  /** Of a node whose machine the launcher can look at: what explains how its jobs fare. */
  remarks: z.array(z.string()).optional(),
  /** Of builders. */
  images: z.array(imageWorkSchema).optional(),
  /** Of builders, and only of the image that was asked about. */
  imageStandings: z.array(imageOutlookSchema).optional(),
  /** Of launchers, and only the provider that was asked about; absent: the member is of a release that does not say. */
  providers: z.array(providerUseSchema).optional(),
  /** Of launchers, and only where tenants were asked about. */
  tenants: z.array(tenantUseSchema).optional(),
  /** Of the builder that has the log that was asked for. */
  log: buildLogPartSchema.optional(),
  /** Of launchers that serve the provider of the node whose console was asked for. */
  console: consoleSchema.optional(),
});
/** All that one member knows of the subject of a question. */
export type Testimony = z.infer<typeof testimonySchema>;

const answerSchema = z.object({
  v: z.literal(1),
  member: z.string(),
  hostname: z.string(),
  version: z.string(),
  /** Oldest events, pools, and clients of tenants that did not fit into a znode. */
  leftOut: z.object({ events: z.number(), pools: z.number(), clients: z.number().optional() }),
  testimony: testimonySchema,
});
/** What one member answered to a question. */
export type Answer = z.infer<typeof answerSchema>;

export function encodeAsk(ask: Omit<Ask, "v">): Uint8Array {
  return Buffer.from(JSON.stringify({ v: 1, ...ask }));
}

/** Throws where the record makes no sense here. */
export function decodeAsk(data: Uint8Array): Ask {
  return askSchema.parse(JSON.parse(Buffer.from(data).toString()));
}

export function encodeAnswer(answer: Omit<Answer, "v">): Uint8Array {
  return Buffer.from(JSON.stringify({ v: 1, ...answer }));
}

/** Throws where the record makes no sense here. */
export function decodeAnswer(data: Uint8Array): Answer {
  return answerSchema.parse(JSON.parse(Buffer.from(data).toString()));
}

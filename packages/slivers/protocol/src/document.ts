import { issueText } from "@nodeyard/runtime";
import { z } from "zod";
import { GrammarError } from "./errors.ts";
import {
  CACHE_PATH,
  CLASS,
  IMAGE,
  isResource,
  MAX_AMOUNT,
  NAME,
  NODE_ID,
  type Resource,
  sshKey,
} from "./grammar.ts";

const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const amount = z.number().int().min(0).max(MAX_AMOUNT);

const line = z
  .string()
  .max(256)
  .regex(/^[^\p{Cc}]*$/u);

const rspec = z
  .record(z.string(), amount)
  .superRefine((value, context) => {
    for (const name of Object.keys(value))
      if (!isResource(name)) context.addIssue({ code: "custom", message: `${name} is not a resource` });
  })
  .transform((value) => value as Partial<Record<Resource, number>>);

const key = z
  .string()
  .max(16_384)
  .transform((line, context) => {
    try {
      return sshKey(line);
    } catch (error) {
      context.addIssue({ code: "custom", message: (error as Error).message });
      return z.NEVER;
    }
  });

const delegation = z.strictObject({
  /** Account that may call methods. */
  caller: z.string().regex(NAME),
  /** Valid only for this generation of the caller. */
  generation: whole.optional(),
  /** One method; absent: every method on this sliver. */
  method: z.string().max(64).optional(),
});

/** Most loans of one lender. */
export const MAX_LOANS = 1000;

const loan = z.strictObject({
  to: z.string().regex(NAME),
  /** The loan is void when the borrower has another generation. Absent: any generation. */
  generation: whole.optional(),
  resource: z.string().refine(isResource, "is no resource"),
  amount,
  /** Seconds since the Unix epoch. */
  until: whole.optional(),
  /** Account that made the loan, or `policy`. */
  by: z.string().max(64).optional(),
});

/** How a sliver is made: by the document, by Create or a ticket, as an account that only makes calls, or not at all. */
export const INSTANTIATIONS = ["plc-instantiated", "delegated", "nm-controller", "not-instantiated"] as const;

/** A writable folder of a sliver that begins as a copy of what an earlier sliver left in it. */
const volume = z.strictObject({
  name: z.string().regex(CLASS),
  /** Where it is in the sliver. */
  path: z.string().max(256).regex(CACHE_PATH),
  /** KiB at most, whether shared with the cache or not. */
  size: z.number().int().min(1024).max(MAX_AMOUNT),
  /** Whose cache it is, and which: equal keys share one. Absent: nobody's, so it begins empty and leaves nothing. */
  key: z.array(line).min(1).max(16).optional(),
  /** `at-end`: what is in it becomes the cache when the sliver has ended. The other words are the writer's own: when it will say so. */
  commit: z.enum(["never", "success", "always", "at-end"]).default("never"),
  /** Seconds since the cache began empty after which it is not used any more. Absent: no limit. */
  maxAge: whole.optional(),
});

const sliver = z.strictObject({
  name: z.string().regex(NAME),
  /** Grows each time the name gets a new client. Whatever refers to an older generation is void. */
  generation: whole,
  instantiation: z.enum(INSTANTIATIONS),
  /** Suspended until it is no longer held: its processes stop where they are, it is not started, and it does not expire. */
  held: z.boolean().default(false),
  /** Seconds since the Unix epoch; absent: never. */
  expiresAt: whole.optional(),
  keys: z.array(key).max(1000).default([]),
  image: z.string().max(128).regex(IMAGE).optional(),
  /** Runs in the sliver when it starts, as its user. */
  initscript: z
    .string()
    .max(65_536)
    .refine((text) => !text.includes("\0"), "must not hold NUL")
    .default(""),
  rspec: rspec.default({}),
  /** Allows containers in the sliver: it may make namespaces and mount in them. */
  nesting: z.boolean().optional(),
  /** Classes of devices of which it has one each for itself; one that is named twice, two. */
  devices: z.array(z.string().regex(CLASS)).max(16).optional(),
  /** Folders of the machine's owner that it may read, by the owner's names for them. */
  caches: z.array(z.string().regex(CLASS)).max(16).optional(),
  /** Caches that it has a copy of for itself. */
  volumes: z
    .array(volume)
    .max(8)
    .refine(areApart, "must have different names, and paths of which none is within another")
    .optional(),
  delegations: z.array(delegation).max(256).default([]),
  /** The lender's complete list, in order; absent: the present list stays. */
  loans: z.array(loan).max(MAX_LOANS).optional(),
  /** Notes of the writer, returned in each report: to which node it belongs. The manager does not interpret them. */
  tags: z
    .record(z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/), line)
    .refine((tags) => Object.keys(tags).length <= 16, "has more than 16 tags")
    .default({}),
});

const head = z.strictObject({
  /** Version of this format. */
  v: z.literal(1),
  /** The only node for which the document is valid. */
  node: z.string().regex(NODE_ID),
  /** Epoch of the writer. A launcher that takes over a node writes with a higher one. */
  epoch: whole,
  /** Grows with each document of an epoch. */
  version: whole,
  /** Name of the writer. Another writer needs a higher epoch, so that two writers that do not know of each other cannot alternate. */
  writer: z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/)
    .optional(),
  /** Seconds since the Unix epoch; for people only. */
  issuedAt: whole,
  /** Most slivers that the writer intends to end. Without it, a document that ends more than half of four or more slivers is refused. */
  removes: whole.optional(),
  /** Amounts for resources that a sliver's rspec does not name. */
  defaults: rspec.default({}),
  slivers: z.array(z.unknown()).max(4096),
});

/**
 * Tag with the W3C `traceparent` of the launch for which a sliver is made. A manager that sends traces continues that trace. The tag is
 * part of a signed document, so neither a sliver nor the holder of a ticket can choose a trace.
 */
export const TRACE_TAG = "traceparent";

/** A folder in one of another would be made in a cache, by a name that a sliver left there. */
export function areApart(all: readonly { readonly name: string; readonly path: string }[]): boolean {
  const clash = all.some(({ path }, at) =>
    all.some((other, place) => place !== at && `${path}/`.startsWith(`${other.path}/`)),
  );
  return !clash && new Set(all.map(({ name }) => name)).size === all.length;
}

/** A copy of a cache, as a document asks for it. */
export type SliverVolume = z.output<typeof volume>;
/** A sliver of a document, with defaults filled in. */
export type SliverSpec = z.output<typeof sliver>;
/** A sliver as its writer writes it; fields with defaults may be absent. */
export type SliverSpecInput = z.input<typeof sliver>;
/** One entry of a lender's list of loans. */
export type Loan = z.output<typeof loan>;
/** A permission for another account to call methods on this sliver. */
export type Delegation = z.output<typeof delegation>;

/** A document as its writer writes it. */
export interface DocumentInput extends Omit<z.input<typeof head>, "slivers"> {
  readonly slivers: readonly SliverSpecInput[];
}

/** A sliver of a document that does not match the grammar. */
export interface Malformed {
  /** Absent when the name is malformed too. */
  readonly name?: string;
  readonly reason: string;
}

/** A complete document: slivers that it does not list are ended. A malformed sliver does not affect the others. */
export interface SliverDocument extends Omit<z.output<typeof head>, "slivers"> {
  readonly slivers: readonly SliverSpec[];
  readonly malformed: readonly Malformed[];
}

/** Throws GrammarError when the document as a whole is malformed. */
export function parseDocument(value: unknown): SliverDocument {
  const { slivers, ...rest } = parse(head, value, "document");
  const read = slivers.map((one) => ({ one, result: sliver.safeParse(one) }));
  return {
    ...rest,
    slivers: read.flatMap(({ result }) => (result.success ? [result.data] : [])),
    malformed: read.flatMap(({ one, result }) =>
      result.success ? [] : [{ ...nameOf(one), reason: reasonOf(result.error, one) }],
    ),
  };
}

/** Throws GrammarError. */
export function parseSliver(value: unknown): SliverSpec {
  return parse(sliver, value, "sliver");
}

/** Throws GrammarError with `what` and the places and values of the first errors. `secret`: no text of the value is quoted. */
export function parse<T>(schema: z.ZodType<T>, value: unknown, what: string, secret = false): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new GrammarError(`${what}: ${reasonOf(result.error, value, secret)}`, { cause: result.error });
}

function nameOf(value: unknown): { name?: string } {
  const name = (value as { name?: unknown } | null)?.name;
  return typeof name === "string" && NAME.test(name) ? { name } : {};
}

function reasonOf({ issues }: z.ZodError, value: unknown, secret = false): string {
  return issues
    .slice(0, 3)
    .map((issue) => issueText(issue, value, { secret }))
    .join("; ");
}

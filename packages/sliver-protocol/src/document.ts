import { z } from "zod";
import { GrammarError } from "./errors.ts";
import { IMAGE, isResource, MAX_AMOUNT, NAME, NODE_ID, type Resource, sshKey } from "./grammar.ts";

const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const amount = z.number().int().min(0).max(MAX_AMOUNT);

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
  /** Account that may call. */
  caller: z.string().regex(NAME),
  /** Holds only for this generation of the caller. */
  generation: whole.optional(),
  /** One method; absent: every method on this sliver. */
  method: z.string().max(64).optional(),
});

/** Loans of one lender. */
export const MAX_LOANS = 1000;

const loan = z.strictObject({
  to: z.string().regex(NAME),
  /** Void when the borrower is of another generation. Absent: any generation. */
  generation: whole.optional(),
  resource: z.string().refine(isResource, "no resource"),
  amount,
  /** Seconds since the Unix epoch. */
  until: whole.optional(),
  /** Account that lent, or `policy`. */
  by: z.string().max(64).optional(),
});

/** How a sliver comes to be: with the document, by Create or a ticket, as an account that only calls, or not at all. */
export const INSTANTIATIONS = ["plc-instantiated", "delegated", "nm-controller", "not-instantiated"] as const;

const sliver = z.strictObject({
  name: z.string().regex(NAME),
  /** Grows each time the name gets a new user; what was bound to an older generation is void. */
  generation: whole,
  instantiation: z.enum(INSTANTIATIONS),
  /** Kept for a person: it is suspended, never destroyed by time. */
  held: z.boolean().default(false),
  /** Seconds since the Unix epoch; absent: never. */
  expiresAt: whole.optional(),
  keys: z.array(key).max(1000).default([]),
  image: z.string().max(128).regex(IMAGE).optional(),
  /** Run in the sliver when it starts, as its user. */
  initscript: z
    .string()
    .max(65_536)
    .refine((text) => !text.includes("\0"), "must not hold NUL")
    .default(""),
  rspec: rspec.default({}),
  /** Containers may be run in it: it may make namespaces of its own, and mount in them. */
  nesting: z.boolean().optional(),
  delegations: z.array(delegation).max(256).default([]),
  /** The lender's whole list, in order; absent: the list that it has stays. */
  loans: z.array(loan).max(MAX_LOANS).optional(),
  /** Its writer's own notes, given back with each report: whose it is. They mean nothing to the manager. */
  tags: z
    .record(
      z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/),
      z
        .string()
        .max(256)
        .regex(/^[^\p{Cc}]*$/u),
    )
    .refine((tags) => Object.keys(tags).length <= 16, "more than 16 tags")
    .default({}),
});

const head = z.strictObject({
  /** Version of this format. */
  v: z.literal(1),
  /** The one node that this is for. */
  node: z.string().regex(NODE_ID),
  /** Of the writer: a launcher that takes a node over writes under a higher one. */
  epoch: whole,
  /** Grows with each document of an epoch. */
  version: whole,
  /** Who writes. Another one needs a higher epoch, so that two who do not know of each other never take turns. */
  writer: z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/)
    .optional(),
  /** Seconds since the Unix epoch. For people: nothing is decided by it. */
  issuedAt: whole,
  /** So many slivers its writer means to end, at most. Without it a document that ends more than half of four or more is refused. */
  removes: whole.optional(),
  /** Amounts for what a sliver's rspec does not name. */
  defaults: rspec.default({}),
  slivers: z.array(z.unknown()).max(4096),
});

/**
 * The tag with the W3C `traceparent` of the launch that a sliver is made for: a manager that sends traces continues that one. It is part of
 * a signed document, so neither a sliver nor a holder of a ticket can name a trace.
 */
export const TRACE_TAG = "traceparent";

/** A sliver of a document, with defaults filled in. */
export type SliverSpec = z.output<typeof sliver>;
/** A sliver as its writer writes it: what has a default may be absent. */
export type SliverSpecInput = z.input<typeof sliver>;
/** One entry of a lender's list of loans. */
export type Loan = z.output<typeof loan>;
/** Lets another account call methods on this sliver. */
export type Delegation = z.output<typeof delegation>;

/** A document as its writer writes it. */
export interface DocumentInput extends Omit<z.input<typeof head>, "slivers"> {
  readonly slivers: readonly SliverSpecInput[];
}

/** A sliver of a document that its grammar refuses. */
export interface Malformed {
  /** Absent when the name is malformed too. */
  readonly name?: string;
  readonly reason: string;
}

/** A full document: what it does not list is to go. One sliver that is malformed does not spoil the others. */
export interface SliverDocument extends Omit<z.output<typeof head>, "slivers"> {
  readonly slivers: readonly SliverSpec[];
  readonly malformed: readonly Malformed[];
}

/** Throws GrammarError when the document as a whole cannot be understood. */
export function parseDocument(value: unknown): SliverDocument {
  const { slivers, ...rest } = parse(head, value, "document");
  const read = slivers.map((one) => ({ one, result: sliver.safeParse(one) }));
  return {
    ...rest,
    slivers: read.flatMap(({ result }) => (result.success ? [result.data] : [])),
    malformed: read.flatMap(({ one, result }) =>
      result.success ? [] : [{ ...nameOf(one), reason: reasonOf(result.error) }],
    ),
  };
}

/** Throws GrammarError. */
export function parseSliver(value: unknown): SliverSpec {
  return parse(sliver, value, "sliver");
}

/** Throws GrammarError, which names `what` and the place of the first errors. */
export function parse<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new GrammarError(`${what}: ${reasonOf(result.error)}`, { cause: result.error });
}

function nameOf(value: unknown): { name?: string } {
  const name = (value as { name?: unknown } | null)?.name;
  return typeof name === "string" && NAME.test(name) ? { name } : {};
}

function reasonOf(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map(({ path, message }) => (path.length === 0 ? message : `${path.join(".")}: ${message}`))
    .join("; ");
}

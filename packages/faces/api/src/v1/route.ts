import type { ApiRole, Claim } from "@nodeyard/model";
import type { z } from "zod";
import type { AppParts, Known } from "../known.ts";
import type { Session } from "./admission.ts";
import type { Sink } from "./event-hub.ts";
import type { Principal } from "./principal.ts";

/** What the handler of a route is given: all of it is checked. */
export interface Call<Params = unknown, Query = unknown, Body = unknown> {
  readonly principal: Principal;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** The header `Idempotency-Key`. */
  readonly key: string | undefined;
  /** The tree was read: a route is not called before. */
  readonly known: Known;
  readonly parts: AppParts;
  /** Counts as so many calls more against the caller's rate: the next one waits. It never refuses the call that charges. */
  readonly charge: (calls: number) => void;
}

/** The reply as a stream, for a route that opens it. */
export interface Stream {
  /** The header `Last-Event-ID`. */
  readonly last: string | undefined;
  /** Whether the caller's right stands still. Streams ask again while they run. */
  readonly admitted: () => boolean;
  /** From here on nothing but events is sent. */
  open(): Sink;
}

/** How the caller came in, for the routes that let browsers in and out. */
export interface Entry {
  /** The caller's rights by its listener or token, without a cookie. */
  readonly claim: Claim | undefined;
  /** What its cookie names. */
  readonly session: Session | undefined;
  /** The header `Authorization`. */
  readonly shown: string | undefined;
  /** Lets it in by a cookie with this text until then, tree time in milliseconds; the audit has it by this claim. */
  enter(claim: Claim, text: string, expires: number): void;
  /** The right that the claim has now; undefined: none any more. */
  standing(claim: Claim): Claim | undefined;
  /** Takes the cookie away. */
  leave(): void;
}

/** A route of REST v1: the single source for its handler, its access rights and its part of the OpenAPI document. */
export interface Route {
  /** Operation id: a verb and its object. */
  readonly id: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** As OpenAPI has it: `/v1/nodes/{id}`. */
  readonly path: string;
  readonly summary: string;
  /** Roles that may call it; all others get 403. What they see of the answer is the handler's decision. */
  readonly roles: readonly ApiRole[];
  /** `open`: also without credentials. `cookie`: only with a session's cookie. Absent: any valid credentials. */
  readonly access?: "open" | "cookie";
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Bytes of a body; absent: as short as those of all other routes. */
  readonly maxBody?: number;
  /** Whether it reads `Idempotency-Key`. */
  readonly keyed?: boolean;
  /** Of the reply; 204 has none. */
  readonly status: 200 | 201 | 204;
  readonly reply?: z.ZodType;
  /** Absent: JSON. */
  readonly type?: string;
  /**
   * Resolves with the reply, in the form of `reply`, which is not checked. Rejects with ApiError or an error of an operation;
   * anything else is an internal error.
   */
  handle(call: Call, stream: Stream, entry: Entry): Promise<unknown>;
}

type Of<T> = T extends z.ZodType ? z.output<T> : undefined;

/** A route whose handler has the types of its schemas. */
export function route<
  Params extends z.ZodObject | undefined = undefined,
  Query extends z.ZodObject | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(
  spec: Omit<Route, "params" | "query" | "body" | "handle"> & {
    readonly params?: Params;
    readonly query?: Query;
    readonly body?: Body;
    readonly handle: (
      call: Call<Of<Params>, Of<Query>, Of<Body>>,
      stream: Stream,
      entry: Entry,
    ) => Promise<unknown>;
  },
): Route {
  return spec as unknown as Route;
}

/** Roles that may read things without an owner. */
export const READERS: readonly ApiRole[] = ["viewer", "operator", "admin"];
/** Every role; a user sees its own labels and tenants. */
export const EVERYBODY: readonly ApiRole[] = ["viewer", "user", "operator", "admin"];
/** Roles that may request nodes. */
export const LEASERS: readonly ApiRole[] = ["user", "operator", "admin"];
export const OPERATORS: readonly ApiRole[] = ["operator", "admin"];
export const ADMINS: readonly ApiRole[] = ["admin"];

import { defined } from "@nodeyard/runtime";
import { z } from "zod";
import { problemSchema, TITLES } from "./problems.ts";
import type { Route } from "./route.ts";

/** Of the API, which only grows within it; not of the program, which changes more often. */
const VERSION = "1.0.0";
const PROBLEM = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
/** Each status of an error once; by name, because a name of a component may begin with a letter only. */
const errorName = (status: number) => `Error${status}`;

/** The OpenAPI 3.1 document of these routes, made from their schemas: it cannot say anything else than what is checked. */
export function openApi(routes: readonly Route[]): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) };
  return {
    openapi: "3.1.0",
    info: {
      title: "Nodeyard",
      version: VERSION,
      description:
        "Test machines from clouds, labs and local hosts. Ids are those of the command line; times are ISO 8601. Keys and values may be added, so clients ignore what they do not know.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    security: [{ token: [] }, { session: [], csrf: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "made by `nodeyard token create`" },
        session: {
          ...{ type: "apiKey", in: "cookie", name: "nodeyard_session" },
          description:
            "of a browser that POST /v1/session let in; by TLS its name is `__Host-nodeyard_session`",
        },
        csrf: {
          ...{ type: "apiKey", in: "header", name: "X-Nodeyard-CSRF" },
          description: "the `csrf` of the session; calls by GET need none",
        },
      },
      schemas: { Problem: schemaOf(problemSchema, "output") },
      responses: Object.fromEntries(
        Object.entries(TITLES).map(([status, description]) => [
          errorName(Number(status)),
          { description, content: PROBLEM },
        ]),
      ),
    },
  };
}

/** One route. Its roles are part of the description, since OpenAPI has no notion of them. */
function operation(route: Route): object {
  const { id, summary, roles, access, params, query, body, keyed, status, reply } = route;
  const { type = "application/json" } = route;
  const parameters = [
    ...parametersOf("path", params),
    ...parametersOf("query", query),
    ...(keyed === true ? [KEY] : []),
  ];
  return {
    operationId: id,
    summary,
    description: `For ${roles.join(", ")}.`,
    // By the first part of the path after /v1, which groups the routes of one thing.
    tags: [route.path.split("/")[2]],
    ...(access && { security: access === "open" ? [{ token: [] }, {}] : [{ session: [], csrf: [] }] }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body && {
      requestBody: {
        // A body whose schema takes nothing may be left out.
        required: !body.safeParse(undefined).success,
        content: { "application/json": { schema: schemaOf(body, "input") } },
      },
    }),
    responses: {
      [status]: {
        description: status === 204 ? "done" : "the answer",
        ...(reply && { content: { [type]: { schema: schemaOf(reply, "output") } } }),
      },
      ...(route.method === "GET" ? { 304: { description: "as `If-None-Match` has it" } } : {}),
      ...Object.fromEntries(
        errorsOf(route).map((error) => [error, { $ref: `#/components/responses/${errorName(error)}` }]),
      ),
    },
  };
}

/** The header by which a call may be repeated; only routes that are `keyed` have it. */
const KEY = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "a text of the client's own choice: a call that is repeated with it makes nothing new as long as what it made exists",
  schema: { type: "string", pattern: "^[!-~]{1,255}$" },
};

/** Statuses that a route may answer with besides its own. 408 and 431 come from the server, before a route is known. */
function errorsOf({ method, params, body }: Route): readonly number[] {
  const changes = method === "GET" ? [] : [409];
  const sent = body === undefined ? [] : [413, 415];
  const named = params === undefined ? [] : [404];
  return [400, 401, 403, ...named, ...changes, ...sent, 408, 429, 431, 500, 503];
}

/** What is read of a schema of an object. */
interface JsonObject {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
  readonly required?: readonly string[];
}

/** Parameters of a path are always needed, whatever their schema says. */
function parametersOf(place: "path" | "query", schema: z.ZodObject | undefined): readonly object[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(schema, "input") as JsonObject;
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...defined({ description }),
    schema: rest,
  }));
}

/** `input`: as it is sent to us. `output`: as we send it. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any", override: shorten });
  return rest;
}

/**
 * Writes a nullable type as a list of two types instead of a union of two schemas, which is shorter and which generators of
 * clients understand.
 */
function shorten({ jsonSchema }: { readonly jsonSchema: Record<string, unknown> }): void {
  const [some, none, ...others] = (jsonSchema.anyOf ?? []) as readonly Record<string, unknown>[];
  if (typeof some?.type !== "string" || some.enum !== undefined || none?.type !== "null") return;
  if (others.length > 0) return;
  delete jsonSchema.anyOf;
  Object.assign(jsonSchema, some, { type: [some.type, "null"] });
}

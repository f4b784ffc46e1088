import { CallRefused, ClientError } from "@nodeyard/client";
import { messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { milliseconds } from "./duration.ts";
import { BoskosRefusal } from "./errors.ts";
import type { Resources } from "./resources.ts";

type Query = Readonly<Record<string, string>>;

/** One route of Boskos. */
interface Route {
  readonly path: string;
  readonly method: "GET" | "POST";
  /** Parameters that must be set. */
  readonly needs: readonly string[];
  /** The answer when one is missing. */
  missing(query: Query): string;
  /** What an error is told with before its own text. */
  about(query: Query): string;
  /** The body of the answer; undefined: none. */
  handle(query: Query, request: FastifyRequest): Promise<unknown>;
}

const userdataSchema = z.record(z.string(), z.string());

/** Paths, status codes and texts are those of Boskos' own handlers, because clients compare them. */
export function addRoutes(app: FastifyInstance, resources: Resources, log: Log): void {
  for (const route of routesOf(resources)) {
    app.all(route.path, async (request, reply) => {
      const query = firstOfEach(request.query as Readonly<Record<string, string | string[]>>);
      if (request.method !== route.method) {
        const post = `Method ${request.method}, ${route.path === "/acquirebystate" ? "/acquire" : route.path} only accepts POST.`;
        return say(reply, 405, route.method === "GET" ? `${route.path} only accepts GET` : post);
      }
      if (route.needs.some((name) => (query[name] ?? "") === ""))
        return say(reply, 400, route.missing(query));
      try {
        const body = await route.handle(query, request);
        return body === undefined
          ? reply.code(200).send()
          : reply
              .type(route.method === "GET" ? "application/json" : "text/plain; charset=utf-8")
              .send(JSON.stringify(body));
      } catch (error) {
        return refuse(reply, error, route.about(query), log);
      }
    });
  }
  // The real server answers every other path so, and supervisors look at it.
  app.setNotFoundHandler((_request, reply) => reply.code(200).send());
}

function routesOf(resources: Resources): readonly Route[] {
  const all = (names: string) => `${names}, all of them must be set in the request.`;
  return [
    {
      path: "/acquire",
      method: "POST",
      needs: ["type", "state", "dest", "owner"],
      missing: ({ type, state, dest, owner }) =>
        `Bad request: ${all(`Type: ${type}, state: ${state}, dest: ${dest}, owner: ${owner}`)}`,
      about: () => "Acquire failed: ",
      handle: ({ type, state, dest, owner, request_id: id }, { raw }) => {
        const wish = { type: type!, state: state!, dest: dest!, owner: owner!, request: id ?? "" };
        return resources.acquire(wish, () => raw.socket.destroyed);
      },
    },
    {
      path: "/acquirebystate",
      method: "POST",
      needs: ["state", "dest", "owner", "names"],
      missing: ({ state, dest, owner, names }) =>
        `state: ${state}, dest: ${dest}, owner: ${owner}, names: ${names} - all of them must be set in the request.`,
      about: () => "AcquireByState: ",
      handle: ({ state, dest, owner, names }) =>
        resources.acquireByState(state!, dest!, owner!, names!.split(",")),
    },
    {
      path: "/release",
      method: "POST",
      needs: ["name", "dest", "owner"],
      missing: ({ name, dest, owner }) => all(`Name: ${name}, dest: ${dest}, owner: ${owner}`),
      about: ({ name, dest, owner }) => `Done failed: ${name} - ${dest} (from ${owner}): `,
      handle: ({ name, dest, owner }) => resources.release(name!, dest!, owner!),
    },
    {
      path: "/update",
      method: "POST",
      needs: ["name", "owner", "state"],
      missing: ({ name, owner, state }) => all(`Name: ${name}, owner: ${owner}, state : ${state}`),
      about: ({ name, owner, state }) => `Update failed: ${name} - ${state} (${owner}): `,
      handle: async ({ name, owner, state }, { body }) =>
        resources.update(name!, owner!, state!, userdataIn(typeof body === "string" ? body : "")),
    },
    {
      path: "/reset",
      method: "POST",
      needs: ["type", "state", "expire", "dest"],
      missing: ({ type, state, expire, dest }) =>
        all(`Type: ${type}, state: ${state}, expire: ${expire}, dest: ${dest}`),
      about: () => "could not reset states: ",
      handle: async ({ type, state, expire, dest }) =>
        resources.reset(type!, state!, milliseconds(expire!), dest!),
    },
    {
      path: "/metric",
      method: "GET",
      needs: ["type"],
      missing: () => "Type must be set in the request.",
      about: () => "",
      handle: ({ type }) => resources.metric(type!),
    },
  ];
}

/** Of a parameter that is there twice the first counts; one that is missing is empty. */
function firstOfEach(query: Readonly<Record<string, string | string[]>>): Query {
  const known = ["type", "state", "dest", "owner", "name", "names", "expire", "request_id"];
  return Object.fromEntries(known.map((name) => [name, [query[name] ?? ""].flat()[0] ?? ""]));
}

function userdataIn(body: string): Readonly<Record<string, string>> {
  if (body.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new BoskosRefusal(400, "the body is no JSON");
  }
  const userdata = userdataSchema.nullable().safeParse(value);
  if (!userdata.success) throw new BoskosRefusal(400, "the body must be a JSON object of strings");
  return userdata.data ?? {};
}

function refuse(reply: FastifyReply, error: unknown, about: string, log: Log): FastifyReply {
  if (error instanceof BoskosRefusal)
    return say(reply, error.status, (error.status === 400 ? "" : about) + error.message);
  // Clients call again after any of these.
  const status =
    error instanceof ClientError ? 503 : error instanceof CallRefused ? poolStatus(error.status) : 500;
  log.warn({ status, error: messageOf(error) }, "could not serve a call");
  return say(reply, status, about + messageOf(error));
}

/** Of what Nodeyard refuses: what the caller sent is the caller's fault, all else is not. */
function poolStatus(status: number): number {
  return [400, 413, 422].includes(status) ? 400 : status === 429 || status === 503 ? 503 : 502;
}

/** As Go's http.Error writes it. */
function say(reply: FastifyReply, status: number, text: string): FastifyReply {
  return reply
    .code(status)
    .type("text/plain; charset=utf-8")
    .header("x-content-type-options", "nosniff")
    .send(`${text}\n`);
}

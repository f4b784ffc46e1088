import { fieldsOf, keyOf, type OldList, oldBody, oldLists, type Query } from "@nodeyard/legacy";
import { progressRow, type Row } from "@nodeyard/operations/listing";
import { sleep } from "@nodeyard/runtime";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { NotReady } from "./errors.ts";
import { wantsJson } from "./http/accept.ts";
import type { Visibility } from "./http/caller.ts";
import { type Body, replyWith } from "./http/reply.ts";
import { type AppParts, BACKUP_PATH, type Work } from "./known.ts";
import { redacted } from "./redacted.ts";

const JSON_TYPE = "application/json";
const TEXT_TYPE = "text/plain; charset=UTF-8";
/** All that the old server answered, and answered alike. */
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** The body of `/live` and `/ready`, without a line end, whatever type is asked for. */
const OK = Buffer.from("OK");
/** Paths that need no token. */
export const HEALTH: ReadonlySet<string> = new Set(["/live", "/ready"]);

/** All endpoints outside of REST v1 and the page. */
export function addRoutes(app: FastifyInstance, parts: AppParts): void {
  addOldLists(app, parts);
  addHealth(app, parts);
  addMetrics(app, parts);
  addWork(app, parts);
}

/** The read-only endpoints of the old web application (docs/contract/operations.md, "Old web lists"). */
function addOldLists(app: FastifyInstance, { clock, sources, answers }: AppParts): void {
  const compute = async (list: OldList, query: Query, visibility: Visibility): Promise<Body> => {
    const known = sources.known();
    if (known === undefined) throw new NotReady("the tree has not been read yet; try again soon");
    const { state } = known.handles.tree.session();
    if (list.readsTree && state !== "connected") throw new NotReady(`the connection to the tree is ${state}`);
    const shown = visibility === "all" ? (row: Row) => row : redacted;
    const text = await oldBody(list, known, query, shown, () => sleep(clock, 0));
    return { type: query.json ? JSON_TYPE : TEXT_TYPE, bytes: Buffer.from(text), computed: clock.now() };
  };
  for (const [path, list] of Object.entries(oldLists))
    anyMethod(app, path, async (request, reply) => {
      const search = new URLSearchParams(request.url.split("?", 2)[1] ?? "");
      const query: Query = {
        json: wantsJson(request.headers.accept),
        fields: fieldsOf(search.get("fields")),
        nodeId: path === "/node-list" ? (search.get("node_id") ?? undefined) : undefined,
      };
      const { visibility } = request;
      // Pages that refresh each second share one table, which may have thousands of rows; callers with fewer rights have one of their own.
      const key = `${visibility} ${keyOf(path, list, query)}`;
      const body = await answers.get(key, () => compute(list, query, visibility));
      return sendBody(request, reply, body);
    });
}

/**
 * `/ready`: whether the process does its work now; it turns false again when the tree is lost. `/live`: whether a restart would help,
 * which does not bring an unreachable tree back.
 */
function addHealth(app: FastifyInstance, { clock, sources }: AppParts): void {
  const ok = (accept: string | undefined) => ({
    type: wantsJson(accept) ? JSON_TYPE : TEXT_TYPE,
    bytes: OK,
    computed: clock.now(),
  });
  const add = (path: string, missing: () => string | undefined) =>
    anyMethod(app, path, async (request, reply) => {
      const why = missing();
      // Answered with 503.
      if (why !== undefined) throw new NotReady(why);
      return sendBody(request, reply, ok(request.headers.accept));
    });
  add("/ready", () => {
    const { ready, why } = sources.readiness();
    return ready ? undefined : why;
  });
  add("/live", () => sources.stuck());
}

/** `GET /metrics`, for Prometheus; made once a second, however many ask. */
function addMetrics(app: FastifyInstance, { clock, sources, answers }: AppParts): void {
  const make = async () => {
    const { type, text } = await sources.metrics();
    return { type, bytes: Buffer.from(text), computed: clock.now() };
  };
  app.get("/metrics", async (_, reply) => {
    const { type, bytes } = await answers.get("/metrics", make);
    return reply.header("content-type", type).header("cache-control", "no-store").send(bytes);
  });
}

/** `GET /api/v1/builds`: builds and uploads under way in this process, from its builder and without the tree. */
function addWork(app: FastifyInstance, { sources }: AppParts): void {
  app.get("/api/v1/builds", async (request, reply) => {
    const work = sources.work();
    if (work === undefined) return reply.callNotFound();
    const body = { v: 1, work: work.map((one) => workRow(one, request.visibility)) };
    return reply.header("cache-control", "no-store").send(body);
  });
}

/**
 * `GET /api/v1/backup`: the whole tree, the credentials in its records included: for the owner's socket alone. The length is
 * announced, so that a copy that breaks off is noticed.
 */
export function addBackup(app: FastifyInstance, { sources }: AppParts): void {
  app.get(BACKUP_PATH, async (_, reply) => {
    const copy = await sources.backup?.();
    if (copy === undefined) return reply.callNotFound();
    const { bytes, stream } = copy;
    return reply.headers({ "content-length": bytes, "content-type": "application/vnd.sqlite3" }).send(stream);
  });
}

/** A build or upload under way. The phase of a build is a line of its log, which may hold anything. */
function workRow(work: Work, visibility: Visibility) {
  const { kind, image, build, provider } = work;
  return { kind, image, build, provider, ...shownProgress(work, visibility) };
}

/** How far it is. */
export function shownProgress(work: Work, visibility: Visibility) {
  const { phase, ...progress } = progressRow(work);
  return { phase: visibility === "all" || work.kind === "upload" ? phase : null, ...progress };
}

/** Adds a path that answers every method like GET, as the old server does, and ignores the body. */
function anyMethod(
  app: FastifyInstance,
  url: string,
  handler: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>,
): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_, payload, done) => {
      payload.resume();
      payload.once("end", () => done(null));
    });
    scope.route({ method: METHODS, url, handler });
  });
}

/** Sends a body with the headers that it is owed, or no more of it than is asked for. */
function sendBody(request: FastifyRequest, reply: FastifyReply, body: Body): FastifyReply {
  const { status, headers, bytes } = replyWith(body, request.headers);
  return reply.code(status).headers(headers).send(bytes);
}

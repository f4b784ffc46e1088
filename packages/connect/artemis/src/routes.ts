import { CallRefused, ClientError } from "@nodeyard/client";
import { issueText, messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { FastifyInstance, FastifyReply } from "fastify";
import { type GuestRequest, guestSchema } from "./guest.ts";
import { GuestRefused, type Guests, NoGuest } from "./guests.ts";

interface Params {
  readonly guest: string;
  readonly log: string;
  readonly type: string;
}

/** The routes for guests, below `/guests` and below `/v0.0.84/guests`: an address of the service may end in a version. */
export function addRoutes(app: FastifyInstance, guests: Guests, log: Log): void {
  for (const prefix of ["/guests", "/:version/guests"])
    void app.register(
      async (routes) => {
        routes.get("/", () => guests.list());
        routes.post("/", async ({ body }, reply) =>
          reply.code(201).send(await guests.create(requestIn(String(body)))),
        );
        routes.get<{ Params: Params }>("/:guest", ({ params }) => guests.get(params.guest));
        routes.delete<{ Params: Params }>("/:guest", async ({ params }, reply) => {
          await guests.delete(params.guest);
          return reply.code(204).send();
        });
        routes.post<{ Params: Params }>("/:guest/reboot", async ({ params }, reply) => {
          await guests.get(params.guest);
          return fail(
            reply,
            501,
            "nothing here restarts the machine of a node; restart it by a command on it, as tmt-reboot does",
          );
        });
        // Nothing has to be prepared: a log is read when it is asked for.
        routes.post<{ Params: Params }>("/:guest/logs/:log/:type", async ({ params }, reply) => {
          await guests.get(params.guest);
          return reply.code(202).type("application/json").send("null");
        });
        routes.get<{ Params: Params }>("/:guest/logs/:log/:type", ({ params }) =>
          guests.log(params.guest, params.log, params.type),
        );
      },
      { prefix },
    );
  app.setNotFoundHandler((_request, reply) => fail(reply, 404, "Not Found"));
  app.setErrorHandler((error, _request, reply) => {
    const status = statusOf(error);
    if (status >= 500) log.warn({ status, error: messageOf(error) }, "could not serve a call");
    return fail(reply, status, messageOf(error));
  });
}

/** Callers try again after a 502 and a 503. */
function statusOf(error: unknown): number {
  if (error instanceof NoGuest) return 404;
  if (error instanceof GuestRefused) return 400;
  if (error instanceof ClientError) return 503;
  if (error instanceof CallRefused) return error.status === 400 ? 400 : error.status === 503 ? 503 : 502;
  return (error as { readonly statusCode?: number }).statusCode ?? 500;
}

/** As FastAPI answers, which callers print. */
function fail(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).send({ detail: { message } });
}

/** Throws GuestRefused. */
function requestIn(body: string): GuestRequest {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new GuestRefused("the body is no JSON");
  }
  const asked = guestSchema.safeParse(value);
  if (asked.success) return asked.data;
  throw new GuestRefused(issueText(asked.error.issues[0]!, value));
}

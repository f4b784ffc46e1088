import type { FastifyInstance } from "fastify";
import { wantsJson } from "../http/accept.ts";
import { NotReady } from "../not-ready.ts";
import type { AppParts } from "../parts.ts";
import { anyMethod } from "./any-method.ts";
import { sendBody } from "./send.ts";

const OK = Buffer.from("OK");

/**
 * `/ready`: whether the process does its work now; it turns false again when the tree is lost. `/live`: whether it answers at all, which
 * is what a supervisor should restart it by: a restart does not bring an unreachable tree back.
 */
export function addHealth(app: FastifyInstance, { clock, sources }: AppParts): void {
  const ok = (accept: string | undefined) => ({
    type: wantsJson(accept) ? "application/json" : "text/plain; charset=UTF-8",
    bytes: OK,
    computed: clock.now(),
  });
  anyMethod(app, "/ready", async (request, reply) => {
    const { ready, why } = sources.readiness();
    if (!ready) throw new NotReady(why);
    return sendBody(request, reply, ok(request.headers.accept));
  });
  anyMethod(app, "/live", async (request, reply) => sendBody(request, reply, ok(request.headers.accept)));
}

import type { FastifyInstance } from "fastify";
import type { AppParts } from "../parts.ts";
import { workBody } from "../work.ts";

/** `GET /api/v1/builds`: builds and uploads under way in this process, from its builder and without the tree. */
export function addWork(app: FastifyInstance, { sources }: AppParts): void {
  app.get("/api/v1/builds", async (request, reply) => {
    const work = sources.work();
    if (work === undefined) return reply.callNotFound();
    return reply.header("cache-control", "no-store").send(workBody(work, request.visibility));
  });
}

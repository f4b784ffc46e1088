import type { FastifyInstance } from "fastify";
import type { AppParts } from "../parts.ts";

/** `GET /metrics`, for Prometheus. */
export function addMetrics(app: FastifyInstance, { sources }: AppParts): void {
  app.get("/metrics", async (_, reply) => {
    const { type, text } = await sources.metrics();
    return reply.header("content-type", type).header("cache-control", "no-store").send(Buffer.from(text));
  });
}

import type { FastifyInstance } from "fastify";
import type { AppParts } from "../parts.ts";

/** `GET /metrics`, for Prometheus; made once a second, however many ask. */
export function addMetrics(app: FastifyInstance, { clock, sources, answers }: AppParts): void {
  const make = async () => {
    const { type, text } = await sources.metrics();
    return { type, bytes: Buffer.from(text), computed: clock.now() };
  };
  app.get("/metrics", async (_, reply) => {
    const { type, bytes } = await answers.get("/metrics", make);
    return reply.header("content-type", type).header("cache-control", "no-store").send(bytes);
  });
}

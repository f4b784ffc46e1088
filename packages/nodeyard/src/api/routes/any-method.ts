import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Adds a path that answers every method as GET, as the old server does; what is sent along is not read. */
export function anyMethod(
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

import type { FastifyReply, FastifyRequest } from "fastify";
import { type Body, replyWith } from "../http/reply.ts";

/** Sends a body with the headers that it is owed, or no more of it than is asked for. */
export function sendBody(request: FastifyRequest, reply: FastifyReply, body: Body): FastifyReply {
  const { status, headers, bytes } = replyWith(body, request.headers);
  return reply.code(status).headers(headers).send(bytes);
}

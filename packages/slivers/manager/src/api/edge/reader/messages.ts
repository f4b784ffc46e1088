import { z } from "zod";

const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const authorization = z.string().max(300).optional();

/**
 * Messages of the parsing process. Its input is untrusted, so its messages are checked as well. `conn` is the number that the daemon
 * gave the connection, `id` that of the question, which its answer repeats: `admit` asks whether the body may be read, `answer` asks
 * for the answer to a call.
 */
export const messageSchema = z.union([
  z.strictObject({ ready: z.literal(true) }),
  z.strictObject({ pong: z.literal(true) }),
  z.strictObject({ conn: count, malformed: z.literal(true) }),
  z.strictObject({
    id: count,
    conn: count,
    admit: z.strictObject({ length: count, chunked: z.boolean(), authorization }),
  }),
  z.strictObject({
    id: count,
    conn: count,
    authorization,
    answer: z.strictObject({
      method: z.string().max(64),
      path: z.string().max(16_384),
      call: z.strictObject({ method: z.string(), params: z.array(z.unknown()) }).optional(),
      wrong: z.string().max(300).optional(),
    }),
  }),
]);

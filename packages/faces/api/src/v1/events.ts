import { z } from "zod";
import { KIND_NAMES } from "./kinds.ts";
import { ApiError } from "./problems.ts";
import { EVERYBODY, type Route, route } from "./route.ts";

/** Streams of one process: each has a connection, and those are needed for calls, too. */
const MAX_STREAMS = 64;

const text = z.string().max(1_000).optional();

/** The answer has no end: it is a stream until the client goes or loses its right (api/v1/event-hub.ts). */
const events = route({
  id: "follow_events",
  method: "GET",
  path: "/v1/events",
  summary: "Follow everything that changes, as server-sent events",
  roles: EVERYBODY,
  query: z.strictObject({
    kinds: text.describe(`with commas between, of: ${KIND_NAMES.join(", ")}; otherwise all`),
    id: text.describe("only things with these ids, with commas between; the same holds for the keys below"),
    state: text,
    provider: text,
    label: text.describe("of nodes"),
    labels: text.describe("of requests and leases"),
    tenant: text,
    newest: z
      .enum(["true", "false"])
      .optional()
      .describe(
        "true: of a thing that changed several times within 100 ms (up to two seconds while much changes) only the newest state is sent",
      ),
    nulls: z.enum(["true", "false"]).optional().describe("false: keys of rows that are null are left out"),
    last_event_id: text.describe("as the header `Last-Event-ID`, for clients that cannot send it"),
  }),
  status: 200,
  type: "text/event-stream",
  reply: z
    .string()
    .describe(
      "`put` (kind, id and row: the thing as the lists have it), `remove` (kind, id), both with `skipped: true` where the thing had states before that this server did not see, `synced` (all there is was sent), `gap` (something was missed: forget everything; all there is follows, up to `synced`), `view` (complete: false while the process cannot see the whole tree)",
    ),
  handle: async ({ principal, query, parts, known }, stream) => {
    const hub = parts.hub(known);
    // Clients try again after ten seconds, when others may have gone.
    if (hub.size >= MAX_STREAMS)
      throw new ApiError(503, "api.too_many_streams", `${MAX_STREAMS} clients follow already`, 10);
    const { kinds, newest, nulls, last_event_id, ...filters } = query;
    const unknown = kinds?.split(",").find((kind) => !KIND_NAMES.some((one) => one === kind));
    if (unknown !== undefined)
      throw new ApiError(400, "api.bad_request", `kinds: there is no ${JSON.stringify(unknown)}`);
    // A row that lacks a key passes its filter, so that one stream can have several kinds of rows.
    const chosen = Object.entries(filters).filter(([, value]) => value !== undefined);
    hub.follow({
      principal,
      kinds: new Set<string>(kinds?.split(",") ?? KIND_NAMES),
      filters: chosen.map(([key, value]) => [key, new Set(value!.split(","))] as const),
      brief: nulls === "false",
      newestOnly: newest === "true",
      last: stream.last ?? last_event_id,
      admitted: stream.admitted,
      sink: stream.open(),
    });
  },
});

export const eventRoutes: readonly Route[] = [events];

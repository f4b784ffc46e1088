import type { Clock } from "@nodeyard/runtime";
import type { Log } from "../telemetry/index.ts";
import type { Body } from "./http/reply.ts";
import type { ShortCache } from "./http/short-cache.ts";
import type { Sources } from "./known.ts";

/** What answers are made with; one for all the places that a process listens at. */
export interface AppParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly sources: Sources;
  /** Bodies that were computed within the last second. */
  readonly answers: ShortCache<Body>;
}

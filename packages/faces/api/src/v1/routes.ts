import { z } from "zod";
import { eventRoutes } from "./events.ts";
import { imageRoutes } from "./image-reads.ts";
import { imageChanges } from "./image-writes.ts";
import { maintenanceRoutes } from "./maintenance.ts";
import { otherRoutes } from "./misc.ts";
import { nodeConsole } from "./node-console.ts";
import { openApi } from "./openapi.ts";
import { providerRoutes } from "./provider-reads.ts";
import { readRoutes } from "./reads.ts";
import { EVERYBODY, type Route, route } from "./route.ts";
import { sessionRoutes } from "./session.ts";
import { writeRoutes } from "./writes.ts";

const document = route({
  id: "get_openapi",
  method: "GET",
  path: "/v1/openapi.json",
  summary: "This document",
  roles: EVERYBODY,
  status: 200,
  reply: z.looseObject({ openapi: z.string() }),
  handle: async () => openApiDocument(),
});

/** All routes of REST v1. */
export const ROUTES: readonly Route[] = [
  document,
  ...sessionRoutes,
  ...otherRoutes,
  ...readRoutes,
  nodeConsole,
  ...providerRoutes,
  ...imageRoutes,
  ...eventRoutes,
  ...writeRoutes,
  ...imageChanges,
  ...maintenanceRoutes,
];

/** The OpenAPI 3.1 document, which docs/reference/openapi.json holds, too. */
export function openApiDocument(): object {
  return openApi(ROUTES);
}

import { type ConnectorKind, connectorKind, openFacade } from "@nodeyard/connect";
import { messageOf, sleep } from "@nodeyard/runtime";
import { type Options, optionsSchema } from "./options.ts";
import { Resources } from "./resources.ts";
import { addRoutes } from "./routes.ts";

/** Serves the HTTP API of Boskos from leases: its clients get nodes of the pool without a change. */
export const boskos: ConnectorKind<Options> = connectorKind(
  "boskos",
  optionsSchema,
  async (options, parts) => {
    const { clock, log } = parts;
    const resources = new Resources(parts, options);
    const facade = await openFacade(options, parts, (app) => addRoutes(app, resources, log));
    const stop = new AbortController();
    const sweeping = (async () => {
      for (;;) {
        await sleep(clock, (options["request-ttl-seconds"] * 1_000) / 3, stop.signal);
        await resources
          .sweep()
          .catch((error) =>
            log.warn({ error: messageOf(error) }, "could not look for requests that no caller asks for"),
          );
      }
    })().catch(() => {});
    log.info({ url: facade.url }, "serves Boskos");
    return {
      async close(graceMs) {
        stop.abort();
        // Calls that wait for a node answer now, that none is free.
        resources.close();
        await facade.close(graceMs);
        await sweeping;
      },
    };
  },
);

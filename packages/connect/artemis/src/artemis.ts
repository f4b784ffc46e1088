import { type ConnectorKind, connectorKind, openFacade } from "@nodeyard/connect";
import { Guests } from "./guests.ts";
import { type Options, optionsSchema } from "./options.ts";
import { addRoutes } from "./routes.ts";

/** Serves the guests of Artemis from leases, for tmt's `provision: {how: artemis}`. */
export const artemis: ConnectorKind<Options> = connectorKind(
  "artemis",
  optionsSchema,
  async (options, parts) => {
    const guests = new Guests(parts, options);
    const facade = await openFacade(options, parts, (app) => addRoutes(app, guests, parts.log));
    parts.log.info({ url: facade.url }, "serves Artemis");
    return { close: (graceMs) => facade.close(graceMs) };
  },
);

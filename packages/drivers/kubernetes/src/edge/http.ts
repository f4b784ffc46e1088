import { ask, dispatcherOf } from "@nodeyard/driver/http";
import type { Route, Transport } from "../client/index.ts";

/** Most connections to one API server. Each watch occupies one. */
const CONNECTIONS = 24;

/** HTTP with persistent connections. Only the timeout of connecting is set here; callers bound their calls by signals. */
export function connect(route: Route): Transport {
  const dispatcher = dispatcherOf(route, route.proxy, CONNECTIONS);
  return {
    async send(one) {
      const { statusCode, body } = await ask(dispatcher, one);
      return { status: statusCode, text: await body.text() };
    },
    async stream(one) {
      const { statusCode, body } = await ask(dispatcher, one);
      return { status: statusCode, body, text: () => body.text() };
    },
    close: () => dispatcher.close(),
  };
}

import { startAzure } from "../server.ts";
import { SUBSCRIPTION } from "./azure.ts";
import { SECRET, TENANT } from "./logins.ts";

/** `node testing/azure/double/main.ts`: the double on a free port, until it is ended. Machines take a second to be made and to go. */
const server = await startAzure({
  ...{ bootMs: 1_000, deletionMs: 1_000, operationMs: 200, pageSize: 2 },
  capacity: [{ size: "Standard_D4s_v5", most: 0 }],
});
console.log(
  `listens ${JSON.stringify({ url: server.url, subscription: SUBSCRIPTION, tenant: TENANT, secret: SECRET })}`,
);
process.once("SIGTERM", () => void server.close());

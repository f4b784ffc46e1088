// One client in a process of its own: `worker.ts <client> <servers>`. It communicates with main.ts by IPC.
import { type ClientName, connectClient } from "./clients/index.ts";
import { carryOut, createEmpty, type Load, type Sample } from "./load.ts";

export type Order = { readonly parent: string } | { readonly load: Load } | { readonly close: true };
export type Answer = { readonly sample?: Sample; readonly error?: string };

const [name, servers] = process.argv.slice(2) as [ClientName, string];

async function obey(order: Order): Promise<Answer> {
  const client = await connecting;
  if ("parent" in order) {
    await createEmpty(client, order.parent);
    return {};
  }
  if ("load" in order) {
    globalThis.gc?.();
    return { sample: await carryOut(client, order.load) };
  }
  await client.close();
  return {};
}

process.on("message", (order: Order) => {
  obey(order)
    .catch((error: unknown) => ({
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }))
    .then((answer) => {
      process.send?.(answer);
      if ("close" in order) process.disconnect();
    });
});
const connecting = connectClient(name, servers);

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const FIRST = 12_000;
const LAST = 32_000;

/**
 * A loopback port that nobody listens on. It lies below the range from which the kernel takes the ports of outgoing
 * connections, so that a server which is restarted finds its port still free.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${FIRST} and ${LAST} on 127.0.0.1 after 100 attempts`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

import { lookup } from "node:dns/promises";
import { connect as netConnect } from "node:net";
import type { Address, Connect, Resolve } from "../contract.ts";

/** A TCP connection of this host. The signal ends it at any time; reads then reject with the signal's reason. */
export const connect: Connect = (to, port, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = netConnect({ host: to.address, port, noDelay: true });
    const onAbort = () => socket.destroy(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("close", () => signal.removeEventListener("abort", onAbort));
    // Stays registered after connecting: a later error without a listener would end the process.
    socket.on("error", reject);
    socket.once("connect", () => {
      const chunks: AsyncIterator<Buffer> = socket[Symbol.asyncIterator]();
      resolve({
        write: (bytes) => void socket.write(bytes),
        read: async () => (await chunks.next()).value,
        close: () => void socket.destroy(),
      });
    });
  });

/** The system's resolver, including the hosts file. A lookup cannot be cancelled, so an abort only ends the wait for it. */
export const resolve: Resolve = async (host, signal) => {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const found = await Promise.race([lookup(host, { all: true, verbatim: true }), aborted.promise]);
    return found as readonly Address[];
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
};

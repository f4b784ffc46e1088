import { createRequire } from "node:module";
import { type BenchClient, type Done, SESSION_TIMEOUT_MS } from "./client.ts";

type Answer = (code: number, error: string) => void;

interface Peer {
  once(event: "connect" | "close", listener: () => void): void;
  init(config: Record<string, unknown>): void;
  close(): void;
  a_create(path: string, data: Buffer, flags: number, answer: Answer): void;
  a_get(path: string, watch: boolean, answer: Answer): void;
  a_set(path: string, data: Buffer, version: number, answer: Answer): void;
}

const ONLY_ERRORS = 1;

/** `zookeeper`, the binding to the C client, through its callbacks, which cost it less than its promises. */
export function connectNative(servers: string): Promise<BenchClient> {
  const load = createRequire(import.meta.url);
  const ZooKeeper = load("zookeeper") as new () => Peer;
  const peer = new ZooKeeper();
  const answer =
    (done: Done): Answer =>
    (code, error) =>
      code === 0 ? done() : done(new Error(`zookeeper: ${code} ${error}`));
  return new Promise((resolve) => {
    peer.once("connect", () =>
      resolve({
        create: (path, data, done) => peer.a_create(path, data, 0, answer(done)),
        get: (path, done) => peer.a_get(path, false, answer(done)),
        set: (path, data, done) => peer.a_set(path, data, -1, answer(done)),
        close: () =>
          new Promise((closed) => {
            peer.once("close", closed);
            peer.close();
          }),
      }),
    );
    peer.init({
      connect: servers,
      timeout: SESSION_TIMEOUT_MS,
      debug_level: ONLY_ERRORS,
      host_order_deterministic: true,
      data_as_buffer: true,
    });
  });
}

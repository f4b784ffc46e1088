import { createRequire } from "node:module";
import { type BenchClient, type Done, SESSION_TIMEOUT_MS } from "./client.ts";

interface Peer {
  once(event: "connected" | "disconnected", listener: () => void): void;
  connect(): void;
  close(): void;
  create(path: string, data: Buffer, done: Done): void;
  getData(path: string, done: Done): void;
  setData(path: string, data: Buffer, done: Done): void;
}

/** `node-zookeeper-client`, through its callbacks. */
export function connectPure(servers: string): Promise<BenchClient> {
  const load = createRequire(import.meta.url);
  const { createClient } = load("node-zookeeper-client") as {
    createClient(servers: string, options: { sessionTimeout: number }): Peer;
  };
  const peer = createClient(servers, { sessionTimeout: SESSION_TIMEOUT_MS });
  return new Promise((resolve) => {
    peer.once("connected", () =>
      resolve({
        create: (path, data, done) => peer.create(path, data, done),
        get: (path, done) => peer.getData(path, done),
        set: (path, data, done) => peer.setData(path, data, done),
        close: () =>
          new Promise((closed) => {
            peer.once("disconnected", closed);
            peer.close();
          }),
      }),
    );
    peer.connect();
  });
}

import { connect } from "@nodeyard/zookeeper";
import { type BenchClient, type Done, SESSION_TIMEOUT_MS } from "./client.ts";

/** Ours, through its promises, as users call it. */
export async function connectOurs(servers: string): Promise<BenchClient> {
  const client = await connect(servers, { sessionTimeoutMs: SESSION_TIMEOUT_MS });
  const end = (promise: Promise<unknown>, done: Done) => {
    promise.then(() => done(), done);
  };
  return {
    create: (path, data, done) => end(client.create(path, data), done),
    get: (path, done) => end(client.get(path), done),
    set: (path, data, done) => end(client.set(path, data), done),
    close: () => client.close(),
  };
}

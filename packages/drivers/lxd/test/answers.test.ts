import type { Listener } from "@nodeyard/driver/http";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { compile } from "../../../../testing/lxd/index.ts";
import { contextOf } from "../../../../testing/qemu/index.ts";
import { LxdClient, refusal } from "../src/client.ts";
import { mapError } from "../src/errors.ts";
import { INSTANCE, isUp } from "../src/instances.ts";
import { nodeMachines } from "../src/machines.ts";
import { OperationEvents } from "../src/operations.ts";
import { openLxd } from "../src/provider.ts";

const { signal } = new AbortController();

test.each([
  ["a right that is missing", 403, "User does not have permission for project ci", "access"],
  ["a file of a device", 400, 'Failed to start device "d": open /dev/kvm: permission denied', "transient"],
  ["a member that no cluster has", 404, "Cluster member not found", "unsupported"],
  ["a member that is away", 500, 'Post "https://b:8443/1.0/x?target=b": Unable to connect to: b', "capacity"],
  ["no member that is free", 500, "No suitable cluster member could be found", "capacity"],
])("%s", (_, status, said, kind) => expect(mapError(refusal("PUT", status, said), "p").kind).toBe(kind));

test.each(["Running", "Ready", "Frozen"])("an instance that is %s", (status) => {
  const rest = { name: "n", type: "container", location: "none", last_used_at: "" };
  expect(isUp(INSTANCE.parse({ ...rest, status }))).toBe(status !== "Frozen");
});

/** A server that answers from a script, by method and path, and what it was asked. */
function server(
  answers: (call: string) => object,
  listen?: (listener: Omit<Listener, "signal">) => Promise<void>,
) {
  const clock = new VirtualClock();
  const calls: string[] = [];
  const send = async ({ method, url }: { method: string; url: string }) => {
    const call = `${method} ${new URL(url).pathname}`;
    calls.push(call);
    return {
      status: 200,
      headers: {},
      text: JSON.stringify({ type: "sync", metadata: null, ...answers(call) }),
    };
  };
  const events = new OperationEvents(clock, listen);
  const options = { clock, random: seededRandom(1), send, events, server: "/lxd", project: "default" };
  return { clock, calls, send, client: new LxdClient(options) };
}

test("a removal that fails over what else is not found has failed", async () => {
  const { client } = server(() => ({ type: "error", error: "Storage volume not found", error_code: 500 }));
  const machines = nodeMachines(client, 1_000, signal);
  await expect(machines.delete("n", signal)).rejects.toThrow("Storage volume not found");
});

const OPERATION = { id: "o", status_code: 200, err: "", metadata: { fingerprint: "f" } };
const TOLD = JSON.stringify({ type: "operation", metadata: OPERATION });

test.each<readonly [string, (listener: Omit<Listener, "signal">) => Promise<void>, number]>([
  ["told before the answer to the call", async ({ onText }) => onText(TOLD), 0],
  ["of which nothing is heard", async () => {}, 1],
  ["whose telling is no text of LXD's", async ({ onText }) => onText("<html>"), 1],
  ["of a server that tells nothing", () => Promise.reject(new Error("no WebSocket")), 1],
])("the end of an operation %s", async (_, listen, asked) => {
  const script = (call: string) =>
    call.startsWith("GET") ? { metadata: OPERATION } : { type: "async", operation: "/1.0/operations/o" };
  const { client, clock, calls } = server(script, listen);
  const done = client.done({ method: "POST", path: "/images" }, signal);
  await clock.advance(30_000);
  expect(await done).toEqual({ fingerprint: "f" });
  expect(calls.filter((call) => call === "GET /1.0/operations/o/wait")).toHaveLength(asked);
});

test("an operation that a restart of the server cancels may be repeated", async () => {
  const cancelled = { id: "o", status_code: 401, err: "Operation cancelled" };
  const { client } = server((call) =>
    call.startsWith("GET") ? { metadata: cancelled } : { type: "async", operation: "/1.0/operations/o" },
  );
  const failure = await client.done({ method: "POST", path: "/instances" }, signal).catch((error) => error);
  expect(mapError(failure, "p").kind).toBe("transient");
});

test("an instance that does not go is deleted again, and not all the time", async () => {
  const there = { name: "n", type: "container", location: "none", last_used_at: "", status: "Running" };
  const { client, clock, calls } = server((call) => (call.startsWith("GET") ? { metadata: there } : {}));
  const end = new AbortController();
  const gone = nodeMachines(client, 1_000, signal).gone("n", "p", end.signal);
  for (let step = 0; step < 600; step++) await clock.advance(100);
  expect(calls.filter((call) => call.startsWith("DELETE")).length).toBeGreaterThan(2);
  expect(calls.filter((call) => call.startsWith("DELETE")).length).toBeLessThan(20);
  end.abort(new Error("enough"));
  await expect(gone).rejects.toThrow("enough");
});

test("the id of a server that has one is its place", async () => {
  const environment = { certificate_fingerprint: "f", server_clustered: false, server_name: "s" };
  const one = {
    config: { "volatile.uuid": "u" },
    environment: { ...environment, architectures: ["x86_64"] },
  };
  const { send } = server((call) => ({ metadata: call === "GET /1.0" ? one : { config: {} } }));
  const config = compile({
    server: "/lxd",
    "cloud-images": [{ name: "tiny" }],
    pools: [{ name: "main", labels: [{ name: "l", "cloud-image": "tiny" }] }],
  });
  const rest = { blob: () => Promise.reject(new Error()), pem: () => "", close: async () => {} };
  const provider = await openLxd(config, contextOf("i"), { send, ...rest });
  expect(provider.place!()).toEqual({ server: "u", project: "default" });
});

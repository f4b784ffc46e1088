import {
  type CreateOrder,
  DriverError,
  type ListWatch,
  type Machine,
  type MakeCall,
  NodeMachines,
  SharedValue,
  sleep,
} from "@nodeyard/driver";
import { z } from "zod";
import { type LxdClient, LxdError } from "./client.ts";
import {
  addressesOf,
  INSTANCE,
  type Instance,
  instanceBody,
  isUp,
  metadataOf,
  nameOf,
  type Server,
} from "./instances.ts";

/** Up to this age a list serves a launch that changed nothing yet, milliseconds. */
const FRESH_MS = 2_000;
/** First and longest pause between two looks for an address, of which no event of the server tells, milliseconds. */
const LOOK_MS = 100;
const SLOWEST_MS = 2_000;
/** Time limit of a call that the server answers before it does the work, milliseconds. */
const TRY_MS = 20_000;
/** Names of instances, and fingerprints of images. */
const NAME = /^[a-zA-Z0-9-]{1,64}$/;

const pathOf = (name: string) => `/instances/${name}`;

/**
 * The instances of nodes, each of which has the name that follows from its node. `makeMs`: limit of making one. `closed` ends creates that go
 * on without their callers.
 */
export function nodeMachines(client: LxdClient, makeMs: number, closed: AbortSignal): NodeMachines<Instance> {
  const { clock } = client;
  const read = (name: string, signal: AbortSignal) =>
    client.maybe(INSTANCE, pathOf(name), signal, { recursion: "1" });
  const remove = async (name: string, signal: AbortSignal) => {
    const stop = { action: "stop", force: true };
    await unless(
      /already stopped|not found/i,
      client.done(change("PUT", `${pathOf(name)}/state`, stop), signal),
    );
    await unless(/not found/i, client.done(change("DELETE", pathOf(name)), signal));
  };
  return new NodeMachines<Instance>({
    ...{ clock, closed, read, metadataOf, isUp, createMs: makeMs, what: "instance" },
    watch: instanceWatch(client, read),
    idOf: ({ name }) => name,
    idIn: (id) => (typeof id === "string" && NAME.test(id) ? id : undefined),
    // One that was never started is what an interrupted launch left: its disk may be half of the image.
    hasFailed: ({ status }) => status === "Stopped" || status === "Error",
    failure: ({ name, status }, place) =>
      new DriverError(
        "transient",
        `${place}: instance ${name} is ${status} before it came up; its console may say why`,
      ),
    delete: remove,
    isLeaving: () => false,
    // By then the server has said that the instance is gone. One that is still there has not heard of it.
    async gone(name, _place, signal) {
      while ((await read(name, signal)) !== undefined) {
        await sleep(clock, LOOK_MS, signal);
        await remove(name, signal);
      }
    },
    isProven: ({ name }, tag) => name === nameOf(tag),
  });
}

/**
 * Lists that launches share, and waits by reads of the one instance, which has its addresses: a list would ask each guest. Operations have ended
 * by then, so a wait is short.
 */
function instanceWatch(
  client: LxdClient,
  read: (name: string, signal: AbortSignal) => Promise<Instance | undefined>,
): Pick<ListWatch<Instance>, "all" | "whole" | "wait"> {
  const { clock } = client;
  const list = new SharedValue({
    clock,
    load: async (signal) => {
      const listed = await client.get(z.array(INSTANCE), "/instances", signal, { recursion: "1" });
      return new Map(listed.map((one) => [one.name, one]));
    },
    what: "list of instances",
    freshMs: FRESH_MS,
    staleMs: FRESH_MS,
  });
  const all = async (signal: AbortSignal, now: boolean) => {
    signal.throwIfAborted();
    if (now) list.invalidate();
    return list.get(signal);
  };
  return {
    all,
    whole: (signal) => all(signal, true),
    async wait(_kind, name, judge, signal) {
      for (let pause = LOOK_MS; ; pause = Math.min(SLOWEST_MS, pause * 1.5)) {
        const item = await read(name, signal);
        const judged = judge({ item, departed: false, whole: true, sure: true });
        if (judged !== undefined) return judged;
        await sleep(clock, pause, signal);
      }
    },
  };
}

/** Creates and starts an instance. `source`: what it is made from, as the API names it. */
export function makeCall(
  client: LxdClient,
  order: CreateOrder,
  source: object,
  { server_clustered }: Server,
): MakeCall {
  const name = nameOf(order.tag);
  const target = order.az === null || !server_clustered ? {} : { query: { target: order.az } };
  return async (signal) => {
    await client.done(
      { ...change("POST", "/instances", instanceBody(order, name, source)), ...target },
      signal,
    );
    const start = change("PUT", `${pathOf(name)}/state`, { action: "start" });
    // Sent again after a lost answer.
    await unless(/already running/i, client.done(start, signal));
    return name;
  };
}

/** Facts of an instance for the node's record (docs/contract/records.md, "Node"). */
export function describe(machine: Instance, { server_name, server_clustered }: Server): Machine {
  const { ipv4, ipv6 } = addressesOf(machine);
  const member = server_clustered ? machine.location : server_name;
  return {
    externalId: machine.name,
    interfaceIp: ipv4 ?? ipv6,
    publicIpv4: ipv4,
    privateIpv4: ipv4,
    publicIpv6: ipv6,
    hostname: machine.name,
    az: member,
    hostId: member,
  };
}

const change = (method: "POST" | "PUT" | "DELETE", path: string, json?: object) => ({
  method,
  path,
  tryMs: TRY_MS,
  ...(json && { json }),
});

/** Ends normally when the server refuses with these words, since what was to be done is done. */
async function unless(words: RegExp, done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!(error instanceof LxdError && words.test(error.said))) throw error;
  }
}

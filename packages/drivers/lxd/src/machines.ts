import {
  type Described,
  DriverError,
  ListWatch,
  type MakeCall,
  machineName,
  NodeMachines,
  type Suspends,
} from "@nodeyard/driver";
import { z } from "zod";
import type { LxdCall, LxdClient } from "./client.ts";
import type { LxdOrder } from "./config.ts";
import {
  addressesOf,
  INSTANCE,
  type Instance,
  instanceBody,
  isUp,
  metadataOf,
  type Server,
} from "./instances.ts";

/** Names of instances, and fingerprints of images. */
const NAME = /^[a-zA-Z0-9-]{1,64}$/;

const pathOf = (name: string) => `/instances/${name}`;

/** The instances of nodes, named after them. `makeMs`: limit of making one. `closed` ends creates that go on without their callers. */
export function nodeMachines(client: LxdClient, makeMs: number, closed: AbortSignal): NodeMachines<Instance> {
  const { clock } = client;
  // A single instance is read with its addresses, for which a list would ask each guest.
  const read = (name: string, signal: AbortSignal) =>
    client.maybe(INSTANCE, pathOf(name), signal, { recursion: "1" });
  const remove = async (name: string, signal: AbortSignal) => {
    await client.done(changeOf(name, "stop"), signal, /already stopped|^404 /i);
    await client.done({ method: "DELETE", path: pathOf(name) }, signal, /^404 /);
  };
  const watch = new ListWatch<Instance>({
    ...{ clock, read, what: "list of instances", isGone: () => false, onFailure: () => {} },
    list: (signal) => client.get(z.array(INSTANCE), "/instances", signal, { recursion: "1" }),
    idOf: ({ name }) => name,
  });
  return new NodeMachines<Instance>({
    ...{ clock, closed, watch, read, metadataOf, isUp, createMs: makeMs, what: "instance" },
    idOf: ({ name }) => name,
    idIn: (id) => (typeof id === "string" && NAME.test(id) ? id : undefined),
    // One that was never started is what an interrupted launch left: its disk may be half of the image.
    hasFailed: ({ status }) => status === "Stopped" || status === "Error",
    failure: ({ name, status }, place) =>
      new DriverError("transient", `${place}: instance ${name} is ${status}; its console may say why`),
    delete: remove,
    isLeaving: () => false,
    isProven: ({ name }, tag) => name === machineName(tag),
  });
}

/** Creates and starts an instance. `source`: what it is made from, as the API names it. */
export function makeCall(client: LxdClient, order: LxdOrder, source: object, server: Server): MakeCall {
  const name = machineName(order.tag);
  const query = order.az === null || !server.server_clustered ? {} : { target: order.az };
  const json = instanceBody(order, name, source);
  return async (signal) => {
    await client.done({ method: "POST", path: "/instances", query, json }, signal);
    // Sent again after a lost answer.
    await client.done(changeOf(name, "start"), signal, /already running/i);
    return name;
  };
}

/** Facts of an instance for the node's record (docs/contract/records.md, "Node"). */
export function describe(machine: Instance, { server_name, server_clustered }: Server): Described {
  const { ipv4, ipv6 } = addressesOf(machine);
  const member = server_clustered ? machine.location : server_name;
  return {
    ...{ hostname: machine.name, az: member, hostId: member },
    ...{ publicIpv4: ipv4, privateIpv4: ipv4, publicIpv6: ipv6 },
  };
}

/** What is frozen keeps its RAM and its address, and goes on within a moment. */
export function suspendsOf(client: LxdClient): Suspends<Instance> {
  return {
    suspend: (name, signal) => client.done(changeOf(name, "freeze"), signal),
    resume: (name, signal) => client.done(changeOf(name, "unfreeze"), signal),
    restOf: ({ status }) => (status === "Frozen" ? "suspended" : undefined),
  };
}

const changeOf = (name: string, action: "start" | "stop" | "freeze" | "unfreeze"): LxdCall => ({
  ...{ method: "PUT", path: `${pathOf(name)}/state` },
  json: { action, force: action === "stop" },
});

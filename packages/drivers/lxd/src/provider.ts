import { type Cloud, cloudProvider, type DriverContext, type Place, type Provider } from "@nodeyard/driver";
import { z } from "zod";
import { amountsOf, limitsOf, needOf, PROJECT, RESOURCES } from "./amounts.ts";
import { LxdClient, type LxdClientOptions, originOf } from "./client.ts";
import type { LxdOrder, LxdProviderConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { imagePart, imageStore, type OpenBlob } from "./images.ts";
import { hasEnded, type Instance, type Server, serverOf, sourceOf } from "./instances.ts";
import { describe, makeCall, nodeMachines, suspendsOf } from "./machines.ts";
import { type LxdWire, OperationEvents } from "./operations.ts";

/** Characters of a console that are kept: what a machine said last. */
const CONSOLE_LENGTH = 64 * 1024;

const MEMBER = z.object({ server_name: z.string(), status: z.string() });

/** What a provider is made of, beside the handles of the process. */
export interface ProviderParts extends Pick<LxdClientOptions, "send"> {
  readonly listen?: LxdWire["listen"];
  readonly blob: OpenBlob;
  /** PEM of a remote's certificate. Throws CloudConfigError. */
  readonly pem: (path: string) => string;
  close(): Promise<void>;
}

/** Opens the machines of a project on a server or cluster. */
export function openLxd(
  config: LxdProviderConfig,
  { clock, random, observe }: DriverContext,
  { send, listen, blob, pem, close }: ProviderParts,
): Promise<Provider> {
  const { own, pools } = config;
  const { server: address, project } = own;
  const labels = pools.flatMap((pool) => [...pool.labels.values()]);
  return cloudProvider<Instance>(config, mapError, (closed): Cloud<Instance> => {
    const events = `${originOf(address).replace("http", "ws")}/1.0/events?${new URLSearchParams({ project, type: "operation" })}`;
    const client = new LxdClient({
      ...{ clock, random, send, server: address, project },
      events: new OperationEvents(clock, listen && ((one) => listen(events, { ...one, signal: closed }))),
      ...(observe && { observe }),
    });
    const projectPath = `/projects/${encodeURIComponent(project)}`;
    const images = imagePart(client);
    let server: Server | undefined;
    // `check` has read it before anything else is called.
    const known = () => server as Server;
    let place: Place = {};
    const learn = async (signal: AbortSignal) => {
      const { keys, environment } = await serverOf(client, signal);
      server = environment;
      place = { server: keys?.["volatile.uuid"] ?? environment.certificate_fingerprint, project };
    };
    /** The members of the cluster that are online; null: there is no cluster. */
    const members = async (signal: AbortSignal) => {
      if (!known().server_clustered) return null;
      const all = await client.get(z.array(MEMBER), "/cluster/members", signal, { recursion: "1" });
      return all.flatMap(({ server_name, status }) => (status === "Online" ? [server_name] : [])).sort();
    };
    return {
      machines: nodeMachines(client, config.launchTimeoutMs, closed),
      suspends: suspendsOf(client),
      // A remote's image is downloaded by the call.
      makeMs: config.launchTimeoutMs,
      make: async (order: LxdOrder) => makeCall(client, order, sourceOf(order, pem), known()),
      describe: async (_, machine) => describe(machine, known()),
      ...{ amounts: amountsOf, isEnding: hasEnded },
      need: async ({ own }) => needOf(own),
      async quota(signal) {
        const targets = (await members(signal))?.map((target) => ({ target })) ?? [{}];
        const [{ config: limits }, ...hosts] = await Promise.all([
          client.get(PROJECT, projectPath, signal),
          ...targets.map((target) => client.get(RESOURCES, "/resources", signal, target)),
        ]);
        return limitsOf(limits, hosts);
      },
      parts: {
        image: {
          ...images,
          // With each list, as the certificate may have been renewed: what is made from now on is at the new place.
          list: async (signal) => (await Promise.all([images.list!(signal), learn(signal)]))[0],
        },
      },
      console: async (name, signal) => (await client.console(name, signal))?.slice(-CONSOLE_LENGTH) ?? null,
      zones: async (_, signal) => (await members(signal)) ?? [known().server_name],
      images: imageStore(client, blob, {
        uploadMs: own.imageUploadTimeoutMs,
        isForVms: labels.some(({ image, own }) => image?.kind === "diskimage" && own.type !== "container"),
      }),
      place: () => place,
      async check(signal) {
        // Anybody may ask what the server is, but not for a project.
        await client.get(PROJECT, projectPath, signal);
        await learn(signal);
      },
      close,
    };
  });
}
